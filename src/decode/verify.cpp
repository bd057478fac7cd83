#include "decode/verify.h"

#include <fmt/format.h>

#include "decode/next_token.h"

namespace foresay {

Verification verify(const Model& model, std::span<Sequence* const> sequences, std::span<const DraftBlock> blocks) {
  Pass pass;
  Verification result;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const std::vector<TokenId>& draft = blocks[i].tokens;
    const int first = static_cast<int>(pass.tokens.size()), count = static_cast<int>(draft.size()) + 1;
    result.first_row.push_back(first);
    pass.tokens.push_back(sequences[i]->tokens.back());
    pass.tokens.insert(pass.tokens.end(), draft.begin(), draft.end());
    // Without drafts the one row is certain, and its state advances at once.
    pass.slices.push_back({first, count, sequences[i]->caches.get(), /*provisional=*/!draft.empty()});
  }
  pass.logit_rows = row_range(0, static_cast<int>(pass.tokens.size()));
  result.forward = model.forward(pass);
  return result;
}

std::optional<Verdict> decide(Sequence& sequence, const DraftBlock& block, std::span<const float> logits) {
  const SamplingOptions& sampling = sequence.options.sampling;
  const std::size_t vocab = logits.size() / (block.tokens.size() + 1);
  const auto index = static_cast<std::uint32_t>(sequence.generated());

  std::string problem;
  const TargetRows target(block.tokens.size() + 1, [&](std::size_t row) {
    const auto values = logits.subspan(row * vocab, vocab);
    std::string why;
    auto distribution = next_distribution(sequence, std::span(block.tokens).first(row), values, why);
    if (distribution) return std::move(*distribution);
    if (problem.empty()) problem = fmt::format("the target's row at generated token {}: {}", index + row, why);
    return Distribution{{0}, {1.0}};
  });
  const bool coupled = sampling.greedy() || sampling.effective_acceptance() == Acceptance::coupled;
  const Verdict verdict = coupled ? accept_coupled(block.tokens, target, index, *sequence.chance)
                                  : accept_ratio(block.tokens, block.q, target, index, *sequence.chance);
  if (!problem.empty()) {
    sequence.fail_with(std::move(problem));
    return std::nullopt;
  }
  return verdict;
}

}  // namespace foresay
