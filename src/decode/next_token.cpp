#include "decode/next_token.h"

#include <utility>
#include <vector>

#include "decode/sample/processors.h"
#include "decode/sample/shape.h"

namespace foresay {

std::optional<Distribution> next_distribution(
    Sequence& sequence, std::span<const TokenId> drafted, LogitRow row, std::string& problem) {
  const DecodeOptions& options = sequence.options;
  const SamplingOptions& sampling = options.sampling;
  const int index = sequence.generated() + static_cast<int>(drafted.size());
  const std::span<const TokenId> forbidden =
      index < options.min_tokens ? std::span<const TokenId>(options.stop_ids) : std::span<const TokenId>();

  problem.clear();
  auto peak = look_for_peak(row, sampling.vocab_limit, problem);
  if (peak && has_processors(sampling, forbidden)) {
    std::vector<float> processed(row.logits.begin(), row.logits.end());
    process(processed, {sequence.tokens, drafted}, sampling, forbidden, row.vocabulary.get());
    auto vocabulary = std::move(row.vocabulary);
    row = LogitRow(std::move(processed));
    row.vocabulary = std::move(vocabulary);
    peak = look_for_peak(row, sampling.vocab_limit, problem);
    if (!peak) problem += " after bias, penalties and bad words";
  }
  if (!peak) return std::nullopt;
  // The coin is keyed by the position, so target and drafter see the same side.
  const bool xtc = sampling.xtc_probability > 0 && !sampling.greedy() &&
                   sequence.chance->happens(sampling.xtc_probability, static_cast<std::uint32_t>(index), Purpose::xtc);
  return shape(std::move(row), *peak, sampling, xtc);
}

}  // namespace foresay
