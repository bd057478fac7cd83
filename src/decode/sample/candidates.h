// decode/sample/candidates.h: the few likely ids of a row, found in one walk over it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace foresay {

/// One column of a row and its logit.
struct Candidate {
  float logit;
  std::uint32_t column;
};

/// The total order of a row: higher logit first, lower id among equals.
[[nodiscard]] inline bool more_likely(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.column < b.column);
}

inline constexpr double kNoFloor = -std::numeric_limits<double>::infinity();

/// The `top_k` most likely columns (0: all) that lie no further below the peak than `floor`, in no order. Masked ones
/// (-inf) are never among them.
///   floor  lowest logit - peak_logit kept
[[nodiscard]] std::vector<Candidate> collect(
    std::span<const float> row, double peak_logit, double floor, std::size_t top_k);

}  // namespace foresay
