#include "decode/sample/candidates.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "decode/sample/scan.h"

namespace foresay {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A float below every logit that the floor keeps.
float below(double peak_logit, double floor) {
  const auto lowest = static_cast<float>(std::max<double>(peak_logit + floor, -std::numeric_limits<float>::max()));
  return floor == kNoFloor ? -kInfinity : std::nextafter(std::nextafter(lowest, -kInfinity), -kInfinity);
}

}  // namespace

std::vector<Candidate> collect(std::span<const float> row, double peak_logit, double floor, std::size_t top_k) {
  // A buffer somewhat larger than k is cut back to k whenever it is full. What is cut can never return, so its border
  // rejects most of the row with one comparison. Ids ascend, so a later id that equals the border loses the tie.
  constexpr std::size_t kSlack = 128;
  const bool cuts = top_k > 0 && top_k < row.size();
  const std::size_t room = cuts ? 2 * top_k + kSlack : row.size() + 1;
  std::vector<Candidate> kept;
  float border = below(peak_logit, floor);
  const auto cut = [&] {
    const auto last = kept.begin() + static_cast<std::ptrdiff_t>(top_k) - 1;
    std::nth_element(kept.begin(), last, kept.end(), more_likely);
    kept.resize(top_k);
    border = std::max(border, kept.back().logit);
  };
  Hits hits = next_above(row, 0, border);
  while (hits.mask != 0) {
    for (std::uint64_t mask = hits.mask; mask != 0; mask &= mask - 1) {
      const std::size_t column = hits.first + static_cast<std::size_t>(std::countr_zero(mask));
      if (!(row[column] > border) || row[column] - peak_logit < floor) continue;
      kept.push_back({row[column], static_cast<std::uint32_t>(column)});
      if (kept.size() == room) cut();
    }
    hits = next_above(row, hits.first + kHitGroup, border);
  }
  if (cuts && kept.size() > top_k) cut();
  return kept;
}

}  // namespace foresay
