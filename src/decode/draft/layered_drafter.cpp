#include "decode/draft/layered_drafter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "decode/draft/draw.h"
#include "decode/draft/hidden_queue.h"
#include "decode/sequence.h"

namespace foresay {
namespace {

struct LayeredState final : DraftState {
  HeadCaches sets;                            ///< by layer: its certain rows
  std::vector<HiddenQueue> waiting;           ///< by layer: what its rows behind those read, as far as it is certain
  std::optional<DraftVocabulary> vocabulary;  ///< made when drafts first come from a part of it, by its own options
};

LayeredState& state_of(Sequence& sequence) {
  return static_cast<LayeredState&>(*sequence.draft_state);
}

/// One layer's pass over rows of any number of sequences.
class LayerPass {
 public:
  LayerPass(const Model& model, int layer)
      : model_(model),
        ops_(model.ops()),
        layer_(static_cast<std::size_t>(layer)),
        is_chained_(model.info().head_scheme == HeadScheme::chained),
        is_read_by_next_(is_chained_ && layer + 1 < model.info().head_layers) {
    pass_.step = layer + 1;
  }

  /// The rows that are certain, but for the newest that waits.
  void add_history(Sequence& sequence) { add(sequence, nullptr); }

  /// Every row up to the newest, with drafts where no token is known yet; the newest row is asked for logits.
  ///   below  [n, D]  under the chained scheme what the layer below has just left for its own rows, drafts included
  void add_draft(Sequence& sequence, const DraftBlock& block, const Tensor& below) {
    state_of(sequence).waiting[layer_].push(below);
    add(sequence, &block);
  }

  /// Runs the rows and leaves the certain ones in the caches. Logits are [sequences that draft, V or columns].
  [[nodiscard]] Tensor run(const std::optional<VocabularySubset>& columns) {
    if (pass_.tokens.empty()) return {};
    pass_.vocabulary = columns ? &*columns : nullptr;
    pass_.hidden = hidden_.size() == 1 ? hidden_.front() : ops_.stack(hidden_);
    HeadForward forward = model_.draft(pass_);
    recycled_ = std::move(forward.recycled);
    for (const Part& part : parts_) {
      if (part.certain < part.rows) part.state->sets[layer_]->keep(part.certain);
    }
    return std::move(forward.logits);
  }

  /// What the rows of a sequence left for the next layer, [n, D], by the order of adding.
  [[nodiscard]] Tensor outputs(std::size_t at) const {
    if (!is_read_by_next_) return {};
    return ops_.select(recycled_, row_range(parts_[at].first_output, parts_[at].rows));
  }

  /// As far as they are certain they wait for a later pass of the next layer.
  void hand_over(std::size_t at) const {
    const Part& part = parts_[at];
    if (!is_read_by_next_ || part.certain == 0) return;
    part.state->waiting[layer_ + 1].push(ops_.select(recycled_, row_range(part.first_output, part.certain)));
  }

 private:
  struct Part {
    LayeredState* state;
    int rows, certain;  ///< run; of these, the leading ones that stay
    int first_output;
  };

  void add(Sequence& sequence, const DraftBlock* block) {
    LayeredState& state = state_of(sequence);
    CacheSet& caches = *state.sets[layer_];
    const Tensor input = state.waiting[layer_].take(ops_);
    const int first = caches.length(), known = static_cast<int>(sequence.tokens.size());
    const int layer = static_cast<int>(layer_);
    // A chained layer is fed by certain rows of the layer below; only what add_draft() appended may be behind them.
    const bool is_fed_by_layer = is_chained_ && layer_ > 0;
    const int inputs = is_fed_by_layer ? state.sets[layer_ - 1]->length() - first : input.rows;
    int certain = std::max(0, std::min(inputs, known - 1 - layer - first));
    if (block == nullptr) certain = std::min(certain, input.rows - 1);  // the newest row may yet be asked for logits
    const int rows = block != nullptr ? input.rows : certain;
    if (certain < inputs) state.waiting[layer_].push(ops_.select(input, row_range(certain, inputs - certain)));

    const int row = static_cast<int>(pass_.tokens.size()), output = static_cast<int>(pass_.output_rows.size());
    parts_.push_back({&state, rows, certain, output});
    if (rows == 0) return;
    for (int p = first; p < first + rows; ++p) {
      const int at = p + 1 + layer;
      pass_.tokens.push_back(at < known ? sequence.tokens[static_cast<std::size_t>(at)]
                                        : block->tokens.at(static_cast<std::size_t>(at - known)));
    }
    pass_.slices.push_back({row, rows, &caches, /*provisional=*/certain < rows});
    hidden_.push_back(rows == input.rows ? input : ops_.select(input, row_range(0, rows)));
    if (is_read_by_next_) {
      for (int i = 0; i < rows; ++i) pass_.output_rows.push_back(row + i);
    } else if (block != nullptr) {
      pass_.output_rows.push_back(row + rows - 1);
    }
    if (block != nullptr) pass_.logit_rows.push_back(static_cast<int>(pass_.output_rows.size()) - 1);
  }

  const Model& model_;
  Ops& ops_;
  std::size_t layer_;
  bool is_chained_;
  bool is_read_by_next_;  ///< the next layer reads what this one leaves
  HeadPass pass_;
  std::vector<Tensor> hidden_;
  std::vector<Part> parts_;
  Tensor recycled_;
};

}  // namespace

std::unique_ptr<DraftState> LayeredDrafter::begin() {
  auto state = std::make_unique<LayeredState>();
  state->sets = model_.make_head_caches();
  state->waiting.resize(state->sets.size());
  return state;
}

std::unique_ptr<DraftState> LayeredDrafter::fork(DraftState& state) {
  const auto& from = static_cast<const LayeredState&>(state);
  auto copy = std::make_unique<LayeredState>();
  copy->sets = model_.make_head_caches();
  for (std::size_t i = 0; i < copy->sets.size(); ++i) copy->sets[i]->restore(from.sets[i]->snapshot());
  copy->waiting = from.waiting;
  return copy;
}

const HeadCaches& LayeredDrafter::caches(const DraftState& state) {
  return static_cast<const LayeredState&>(state).sets;
}

void LayeredDrafter::observe(Sequence& sequence, const Tensor& hidden) {
  LayeredState& state = state_of(sequence);
  const bool is_parallel = model_.info().head_scheme == HeadScheme::parallel;
  for (std::size_t i = 0; i < state.waiting.size(); ++i) {
    if (i == 0 || is_parallel) state.waiting[i].push(hidden);
    if (state.waiting[i].rows() <= kMostWaiting) continue;
    LayerPass pass(model_, static_cast<int>(i));
    pass.add_history(sequence);
    (void)pass.run(std::nullopt);
    pass.hand_over(0);
  }
}

std::vector<DraftBlock> LayeredDrafter::propose(std::span<Sequence* const> sequences, std::span<const int> depths) {
  std::vector<DraftBlock> blocks(sequences.size());
  std::vector<Drafting> drafting;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (depths[i] <= 0) continue;
    LayeredState& state = state_of(*sequences[i]);
    if (state.waiting.front().rows() == 0) continue;  // nothing is known behind the last draft
    drafting.push_back({sequences[i], &blocks[i], std::min(depths[i], max_depth()),
        vocabulary_of(model_, always_, *sequences[i], state.vocabulary)});
  }
  if (drafting.empty()) return blocks;

  const std::optional<VocabularySubset> columns = columns_of(drafting);
  std::vector<Tensor> below(drafting.size());
  for (int layer = 0; !drafting.empty(); ++layer) {
    LayerPass pass(model_, layer);
    for (std::size_t i = 0; i < drafting.size(); ++i) {
      pass.add_draft(*drafting[i].sequence, *drafting[i].block, below[i]);
    }
    const Tensor logits = pass.run(columns);
    std::vector<Drafting> next;
    below.clear();
    auto going_on = draw(model_.ops(), logits, columns, drafting);
    for (std::size_t i = 0, g = 0; i < drafting.size(); ++i) {
      if (g == going_on.size() || going_on[g] != static_cast<int>(i)) {
        pass.hand_over(i);
        continue;
      }
      ++g;
      below.push_back(pass.outputs(i));
      next.push_back(std::move(drafting[i]));
    }
    drafting = std::move(next);
  }
  return blocks;
}

}  // namespace foresay
