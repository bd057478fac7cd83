#include "decode/round.h"

#include <algorithm>

#include "decode/verify.h"

namespace foresay {
namespace {

void count(Stats& stats, std::size_t drafted, int accepted) {
  ++stats.passes;
  if (stats.drafted.size() < drafted) {
    stats.drafted.resize(drafted);
    stats.accepted.resize(drafted);
  }
  for (std::size_t i = 0; i < drafted; ++i) {
    ++stats.drafted[i];
    if (static_cast<int>(i) < accepted) ++stats.accepted[i];
  }
}

/// Emits what survived and lets every cache keep exactly the rows that are now certain: the pending token and all
/// emitted ones but the last.
void commit(const Model& model, Drafter* drafter, Sequence& sequence, const DraftBlock& block, const Verdict& verdict,
    const Tensor& hidden, int first_row, std::span<const float> logits) {
  std::vector<TokenId> candidates(block.tokens.begin(), block.tokens.begin() + verdict.accepted);
  candidates.push_back(verdict.next);
  const std::size_t vocab = logits.size() / (block.tokens.size() + 1);
  const int emitted = sequence.emit(candidates, logits.first(candidates.size() * vocab));  // cut at the first stop
  sequence.caches->keep(emitted);
  if (!sequence.draft_state || sequence.finish != Finish::running) return;
  drafter->observe(sequence, model.ops().select(hidden, row_range(first_row, emitted)));
}

}  // namespace

int round_depth(const Sequence& sequence, const Drafter* drafter) {
  if (drafter == nullptr || !sequence.draft_state) return 0;
  return std::max(0, std::min({sequence.options.depth, drafter->max_depth(), sequence.remaining() - 1}));
}

void round(const Model& model, Drafter* drafter, std::span<Sequence* const> sequences) {
  std::vector<Sequence*> running;
  std::vector<int> depths;
  for (Sequence* sequence : sequences) {
    if (sequence->finish != Finish::running) continue;
    running.push_back(sequence);
    depths.push_back(round_depth(*sequence, drafter));
  }
  if (running.empty()) return;

  std::vector<DraftBlock> blocks =
      drafter != nullptr ? drafter->propose(running, depths) : std::vector<DraftBlock>(running.size());
  const Verification verification = verify(model, running, blocks);
  const std::span<const float> logits = model.ops().read(verification.forward.logits);
  const auto vocab = static_cast<std::size_t>(verification.forward.logits.width);
  const Tensor& hidden = model.head_input(verification.forward);

  for (std::size_t i = 0; i < running.size(); ++i) {
    Sequence& sequence = *running[i];
    const std::size_t drafted = blocks[i].tokens.size(), first = static_cast<std::size_t>(verification.first_row[i]);
    const int known = static_cast<int>(sequence.tokens.size());
    const auto rows = logits.subspan(first * vocab, (drafted + 1) * vocab);
    const auto verdict = decide(sequence, blocks[i], rows);
    if (!verdict) continue;  // the sequence has failed
    count(sequence.stats, drafted, verdict->accepted);
    if (sequence.on_round) sequence.on_round({known, blocks[i].tokens, verdict->accepted});
    commit(model, drafter, sequence, blocks[i], *verdict, hidden, verification.first_row[i], rows);
  }
}

}  // namespace foresay
