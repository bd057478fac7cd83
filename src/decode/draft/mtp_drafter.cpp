#include "decode/draft/mtp_drafter.h"

#include <optional>
#include <utility>

#include "decode/draft/draw.h"
#include "decode/draft/hidden_queue.h"
#include "decode/sequence.h"

namespace foresay {
namespace {

struct MtpState final : DraftState {
  HeadCaches sets;
  HiddenQueue waiting;                        ///< of positions whose pairs are not in the caches yet
  std::optional<DraftVocabulary> vocabulary;  ///< made when drafts first come from a part of it, by its own options

  [[nodiscard]] CacheSet& caches() { return *sets.front(); }
};

MtpState& state_of(Sequence& sequence) {
  return static_cast<MtpState&>(*sequence.draft_state);
}

/// Adds pairs of a sequence to a head pass. Pair t joins the hidden state of position t with the token at t + 1.
void add_pairs(
    HeadPass& pass, std::vector<Tensor>& hidden, const Sequence& sequence, MtpState& state, const Tensor& rows) {
  const int first = static_cast<int>(pass.tokens.size()), at = state.caches().length();
  for (int i = 0; i < rows.rows; ++i) pass.tokens.push_back(sequence.tokens.at(static_cast<std::size_t>(at + i + 1)));
  pass.slices.push_back({first, rows.rows, &state.caches(), false});
  hidden.push_back(rows);
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
  copy->waiting = from.waiting;
  return copy;
}

void MtpDrafter::observe(Sequence& sequence, const Tensor& hidden) {
  MtpState& state = state_of(sequence);
  state.waiting.push(hidden);
  if (state.waiting.rows() <= kMostWaiting) return;

  // All but the newest pair become history; the newest may wait for its token.
  Ops& ops = model_.ops();
  const Tensor all = state.waiting.take(ops);
  HeadPass pass;
  std::vector<Tensor> rows;
  add_pairs(pass, rows, sequence, state, ops.select(all, row_range(0, all.rows - 1)));
  pass.hidden = rows.front();
  (void)model_.draft(pass);  // no output rows: fills the cache alone
  state.waiting.push(ops.select(all, std::vector<int>{all.rows - 1}));
}

std::vector<DraftBlock> MtpDrafter::propose(std::span<Sequence* const> sequences, std::span<const int> depths) {
  Ops& ops = model_.ops();
  std::vector<DraftBlock> blocks(sequences.size());
  std::vector<Drafting> drafting;  // those that have a row in the current step, in order of their rows

  HeadPass pass;
  std::vector<Tensor> hidden;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (depths[i] <= 0) continue;
    Sequence& sequence = *sequences[i];
    MtpState& state = state_of(sequence);
    add_pairs(pass, hidden, sequence, state, state.waiting.take(ops));
    pass.output_rows.push_back(static_cast<int>(pass.tokens.size()) - 1);
    drafting.push_back({&sequence, &blocks[i], depths[i], vocabulary_of(model_, always_, sequence, state.vocabulary)});
  }
  if (drafting.empty()) return blocks;
  pass.hidden = ops.stack(hidden);

  const std::optional<VocabularySubset> columns = columns_of(drafting);
  struct Genuine {
    CacheSet* caches;
    int length;
  };
  std::vector<Genuine> genuine;
  while (true) {
    pass.vocabulary = columns ? &*columns : nullptr;
    pass.logit_rows = row_range(0, static_cast<int>(drafting.size()));
    const HeadForward forward = model_.draft(pass);
    if (pass.step == 1) {
      for (const Slice& slice : pass.slices) genuine.push_back({slice.caches, slice.caches->length()});
    }
    const std::vector<int> rows = draw(ops, forward.logits, columns, drafting);
    if (rows.empty()) break;

    HeadPass deeper;
    deeper.step = pass.step + 1;
    deeper.hidden = ops.select(forward.recycled, rows);
    deeper.output_rows = row_range(0, static_cast<int>(rows.size()));
    std::vector<Drafting> next;
    for (const int row : rows) {
      Drafting& each = drafting[static_cast<std::size_t>(row)];
      deeper.tokens.push_back(each.block->tokens.back());
      deeper.slices.push_back({static_cast<int>(next.size()), 1, &state_of(*each.sequence).caches(), false});
      next.push_back(std::move(each));
    }
    pass = std::move(deeper);
    drafting = std::move(next);
  }
  for (const auto& [caches, length] : genuine) caches->truncate(length);
  return blocks;
}

}  // namespace foresay
