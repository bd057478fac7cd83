#include "decode/sample/row.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "decode/sample/scan.h"

namespace foresay {

std::span<const float> emittable(const LogitRow& row, TokenId vocab_limit) {
  const std::size_t below =
      row.vocabulary ? row.vocabulary->columns_below(vocab_limit) : static_cast<std::size_t>(std::max(vocab_limit, 0));
  return row.logits.first(std::min(row.logits.size(), below));
}

std::optional<Peak> look_for_peak(const LogitRow& row, TokenId vocab_limit, std::string& problem) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto logits = emittable(row, vocab_limit);
  const Survey found = survey(logits);
  if (!found.is_usable || !survey(row.logits.subspan(logits.size())).is_usable) {
    const auto first = std::ranges::find_if_not(row.logits, [](float logit) { return logit < kInfinity; });
    const auto column = static_cast<std::size_t>(first - row.logits.begin());
    problem = fmt::format("the logit of id {} is {}, not a finite number", row.id(column), *first);
    return std::nullopt;
  }
  if (logits.empty() || logits[found.peak] == -kInfinity) {
    problem = fmt::format("no token can be emitted: all {} logits from id 0 are -inf", logits.size());
    return std::nullopt;
  }
  return Peak{logits[found.peak], row.id(found.peak), found.peak};
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
