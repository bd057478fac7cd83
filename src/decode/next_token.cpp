#include "decode/next_token.h"

#include <vector>

#include "decode/sample/processors.h"
#include "decode/sample/row.h"
#include "decode/sample/shape.h"

namespace foresay {

std::optional<Distribution> next_distribution(
    Sequence& sequence, std::span<const TokenId> drafted, std::span<const float> logits, std::string& problem) {
  const DecodeOptions& options = sequence.options;
  const SamplingOptions& sampling = options.sampling;
  const int index = sequence.generated() + static_cast<int>(drafted.size());
  const std::span<const TokenId> forbidden =
      index < options.min_tokens ? std::span<const TokenId>(options.stop_ids) : std::span<const TokenId>();

  problem = row_problem(logits, sampling.vocab_limit);
  std::vector<float> processed;
  if (problem.empty() && has_processors(sampling, forbidden)) {
    processed.assign(logits.begin(), logits.end());
    process(processed, {sequence.tokens, drafted}, sampling, forbidden);
    logits = processed;
    problem = row_problem(logits, sampling.vocab_limit);
    if (!problem.empty()) problem += " after bias, penalties and bad words";
  }
  if (!problem.empty()) return std::nullopt;
  // The coin is keyed by the position, so target and drafter see the same side.
  const bool xtc = sampling.xtc_probability > 0 && !sampling.greedy() &&
                   sequence.chance->happens(sampling.xtc_probability, static_cast<std::uint32_t>(index), Purpose::xtc);
  return shape(logits, sampling, xtc);
}

}  // namespace foresay
