#include "decode/sample/row.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "decode/sample/scan.h"

namespace foresay {

std::span<const float> emittable(std::span<const float> logits, TokenId vocab_limit) {
  return logits.first(std::min(logits.size(), static_cast<std::size_t>(std::max(vocab_limit, 0))));
}

std::optional<Peak> look_for_peak(std::span<const float> logits, TokenId vocab_limit, std::string& problem) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto row = emittable(logits, vocab_limit);
  const Survey found = survey(row);
  if (!found.is_usable || !survey(logits.subspan(row.size())).is_usable) {
    const auto first = std::ranges::find_if_not(logits, [](float logit) { return logit < kInfinity; });
    problem = fmt::format("the logit of id {} is {}, not a finite number", first - logits.begin(), *first);
    return std::nullopt;
  }
  if (row.empty() || row[found.peak] == -kInfinity) {
    problem = fmt::format("no token can be emitted: all {} logits from id 0 are -inf", row.size());
    return std::nullopt;
  }
  return Peak{row[found.peak], static_cast<TokenId>(found.peak)};
}

std::string row_problem(std::span<const float> logits, TokenId vocab_limit) {
  std::string problem;
  (void)look_for_peak(logits, vocab_limit, problem);
  return problem;
}

Peak find_peak(std::span<const float> logits, TokenId vocab_limit) {
  std::string problem;
  const auto peak = look_for_peak(logits, vocab_limit, problem);
  if (!peak) fail(ErrorCode::internal, "[sample] {}", problem);
  return *peak;
}

}  // namespace foresay
