#include "decode/draft/mtp_drafter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "decode/draft/draft_vocabulary.h"
#include "decode/next_token.h"
#include "decode/sequence.h"

namespace foresay {
namespace {

// Pairs that wait to be read are merged into the next draft's first step. A prompt's are too many for that: they are
// read at once, for keys and values only.
constexpr int kMostPending = 16;

struct MtpState final : DraftState {
  HeadCaches sets;
  std::vector<Tensor> pending;  ///< hidden states whose pairs are not in the caches yet
  int pending_rows = 0;
  std::optional<DraftVocabulary> vocabulary;  ///< made when drafts first come from a part of it, by its own options

  [[nodiscard]] CacheSet& caches() { return *sets.front(); }
};

MtpState& state_of(Sequence& sequence) {
  return static_cast<MtpState&>(*sequence.draft_state);
}

/// Adds `count` pending pairs of a sequence to a head pass. Pair t joins the hidden state of position t with the token
/// at t + 1.
void add_pairs(
    HeadPass& pass, std::vector<Tensor>& hidden, const Sequence& sequence, MtpState& state, const Tensor& rows) {
  const int first = static_cast<int>(pass.tokens.size()), at = state.caches().length();
  for (int i = 0; i < rows.rows; ++i) pass.tokens.push_back(sequence.tokens.at(static_cast<std::size_t>(at + i + 1)));
  pass.slices.push_back({first, rows.rows, &state.caches(), false});
  hidden.push_back(rows);
}

/// Draws the next draft token of a block from one row of head logits. False when no token can be drawn from it: the
/// block ends there, and a broken head costs speed, never the answer.
bool draw(Sequence& sequence, DraftBlock& block, LogitRow row) {
  std::string problem;
  auto q = next_distribution(sequence, block.tokens, std::move(row), problem);
  if (!q) return false;
  const auto index = static_cast<std::uint32_t>(sequence.generated() + static_cast<int>(block.tokens.size()));
  block.q.push_back(std::move(*q));
  block.tokens.push_back(sequence.chance->draw(block.q.back(), index, draft_purpose(sequence.options.sampling)));
  return true;
}

}  // namespace

std::unique_ptr<DraftState> MtpDrafter::begin() {
  auto state = std::make_unique<MtpState>();
  state->sets = model_.make_head_caches();
  return state;
}

std::unique_ptr<DraftState> MtpDrafter::fork(DraftState& state) {
  auto& from = static_cast<MtpState&>(state);
  auto copy = std::make_unique<MtpState>();
  copy->sets = model_.make_head_caches();
  copy->caches().restore(from.caches().snapshot());
  copy->pending = from.pending;
  copy->pending_rows = from.pending_rows;
  return copy;
}

std::shared_ptr<const VocabularySubset> MtpDrafter::vocabulary_of(Sequence& sequence) const {
  const DecodeOptions& options = sequence.options;
  const int vocab = model_.info().vocab, low = draft_vocabulary_low(model_, options.draft_vocabulary);
  if (low == 0) return nullptr;
  std::optional<DraftVocabulary>& own = state_of(sequence).vocabulary;
  if (!own || own->low() != low) {
    std::vector<TokenId> always = always_;
    always.insert(always.end(), options.stop_ids.begin(), options.stop_ids.end());
    for (const auto& [id, bias] : options.sampling.logit_bias) always.push_back(id);
    std::erase_if(always, [&](TokenId id) { return id < 0 || id >= vocab; });
    own.emplace(low, always);
  }
  own->grow(sequence.tokens);
  return own->subset();
}

void MtpDrafter::observe(Sequence& sequence, const Tensor& hidden) {
  MtpState& state = state_of(sequence);
  state.pending.push_back(hidden);
  state.pending_rows += hidden.rows;
  if (state.pending_rows <= kMostPending) return;

  // All but the newest pair become history; the newest may wait for its token.
  Ops& ops = model_.ops();
  const Tensor all = ops.stack(state.pending);
  HeadPass pass;
  std::vector<Tensor> rows;
  add_pairs(pass, rows, sequence, state, ops.select(all, row_range(0, all.rows - 1)));
  pass.hidden = rows.front();
  (void)model_.draft(pass);  // no output rows: fills the cache alone
  state.pending = {ops.select(all, std::vector<int>{all.rows - 1})};
  state.pending_rows = 1;
}

std::vector<DraftBlock> MtpDrafter::propose(std::span<Sequence* const> sequences, std::span<const int> depths) {
  Ops& ops = model_.ops();
  std::vector<DraftBlock> blocks(sequences.size());
  std::vector<std::size_t> drafting;  // sequences that have a row in the current step, in order of their rows

  HeadPass pass;
  std::vector<Tensor> hidden;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (depths[i] <= 0) continue;
    MtpState& state = state_of(*sequences[i]);
    add_pairs(pass, hidden, *sequences[i], state, ops.stack(state.pending));
    pass.output_rows.push_back(static_cast<int>(pass.tokens.size()) - 1);
    pass.logit_rows.push_back(static_cast<int>(pass.logit_rows.size()));
    state.pending.clear();
    state.pending_rows = 0;
    drafting.push_back(i);
  }
  if (drafting.empty()) return blocks;

  // The pass makes the columns that any of its sequences draws from; each then sees its own.
  std::vector<std::shared_ptr<const VocabularySubset>> own(sequences.size());
  std::vector<const VocabularySubset*> all;
  for (const std::size_t i : drafting) {
    own[i] = vocabulary_of(*sequences[i]);
    all.push_back(own[i].get());
  }
  const bool whole = std::ranges::find(all, nullptr) != all.end();
  const VocabularySubset made = whole ? VocabularySubset{model_.info().vocab, {}} : union_of(all);
  if (!whole) pass.vocabulary = &made;

  const std::vector<std::size_t> first_step = drafting;
  pass.hidden = ops.stack(hidden);
  std::vector<int> genuine(sequences.size());
  while (true) {
    const HeadForward forward = model_.draft(pass);
    if (pass.step == 1) {
      for (const std::size_t i : first_step) genuine[i] = state_of(*sequences[i]).caches().length();
    }
    const std::span<const float> logits = ops.read(forward.logits);
    const auto width = static_cast<std::size_t>(forward.logits.width);
    std::vector<std::size_t> next;
    std::vector<int> rows;
    for (std::size_t row = 0; row < drafting.size(); ++row) {
      const std::size_t i = drafting[row];
      LogitRow values(logits.subspan(row * width, width), forward.logits.storage);  // q goes on looking at it
      if (own[i] && own[i]->size() != made.size()) values = LogitRow(reduce(values.logits, made, *own[i]));
      values.vocabulary = own[i];
      if (draw(*sequences[i], blocks[i], std::move(values)) && depths[i] > pass.step) {
        next.push_back(i);
        rows.push_back(static_cast<int>(row));
      }
    }
    if (next.empty()) break;

    HeadPass deeper;
    deeper.step = pass.step + 1;
    deeper.vocabulary = pass.vocabulary;
    deeper.hidden = ops.select(forward.recycled, rows);
    for (std::size_t row = 0; row < next.size(); ++row) {
      const int at = static_cast<int>(row);
      deeper.tokens.push_back(blocks[next[row]].tokens.back());
      deeper.slices.push_back({at, 1, &state_of(*sequences[next[row]]).caches(), false});
      deeper.output_rows.push_back(at);
      deeper.logit_rows.push_back(at);
    }
    pass = std::move(deeper);
    drafting = std::move(next);
  }
  for (const std::size_t i : first_step) state_of(*sequences[i]).caches().truncate(genuine[i]);
  return blocks;
}

}  // namespace foresay
