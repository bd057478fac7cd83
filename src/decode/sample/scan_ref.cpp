// Plain loops: the definition of what the walks give. Those over neighbouring columns are written so that a compiler
// can use vectors.
#include <algorithm>
#include <bit>
#include <limits>

#include "decode/sample/exponential.h"
#include "decode/sample/scan_variants.h"

namespace foresay::scan_variants {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Survey survey_reference(std::span<const float> row) {
  constexpr std::size_t kLanes = 16, kStretch = 1024;
  Survey found;
  float best = -kInfinity;
  std::size_t stretch = 0;  // where the highest value was first seen
  for (std::size_t begin = 0; begin < row.size(); begin += kStretch) {
    const std::size_t end = std::min(begin + kStretch, row.size());
    std::array<float, kLanes> highest;
    std::array<int, kLanes> finite;
    highest.fill(-kInfinity);
    finite.fill(1);
    for (std::size_t i = begin; i < end; i += kLanes) {
      for (std::size_t lane = 0; lane < std::min(kLanes, end - i); ++lane) {
        const float value = row[i + lane];
        highest[lane] = value > highest[lane] ? value : highest[lane];
        finite[lane] &= value < kInfinity ? 1 : 0;
      }
    }
    found.is_usable = found.is_usable && std::ranges::min(finite) == 1;
    const float here = std::ranges::max(highest);
    if (here > best) {
      best = here;
      stretch = begin;
    }
  }
  while (stretch < row.size() && row[stretch] != best) ++stretch;
  found.peak = stretch < row.size() ? stretch : 0;
  return found;
}

double sum_exp_reference(std::span<const float> row, double peak, double scale) {
  std::array<double, 16> sums{};
  for (std::size_t i = 0; i < row.size(); ++i) {
    sums[i % 16] += exp_in_range(std::max((static_cast<double>(row[i]) - peak) * scale, exponential::kLeast));
  }
  return fold(sums);
}

Hits next_above_reference(std::span<const float> row, std::size_t from, float border) {
  for (; from < row.size(); from += kHitGroup) {
    const std::size_t count = std::min(kHitGroup, row.size() - from);
    std::uint64_t mask = 0;
    for (std::size_t i = 0; i < count; ++i) mask |= std::uint64_t{row[from + i] > border} << i;
    if (mask != 0) return {from, mask};
  }
  return {from, 0};
}

Hits next_contenders_reference(std::span<const float> row, std::size_t from, const Contest& contest) {
  const PhiloxInputs& noise = contest.noise;
  while (from < row.size()) {
    const std::size_t end = std::min(row.size(), (from / kBlock + 1) * kBlock);
    const auto values = row.subspan(from, end - from);
    const std::uint64_t least = least_word(*std::ranges::max_element(values), contest);
    if (least > 0xffffffffu) {
      from = end;
      continue;
    }
    for (; from < end; from += kHitGroup) {
      std::uint64_t mask = 0;
      for (std::size_t i = 0; i < std::min(kHitGroup, end - from); i += 4) {
        const auto block = static_cast<std::uint32_t>((from + i) / 4);
        const auto words = philox({block, noise.index, noise.purpose, noise.choice}, noise.key);
        for (std::size_t j = 0; j < 4 && from + i + j < end; ++j) mask |= std::uint64_t{words[j] >= least} << (i + j);
      }
      if (mask != 0) return {from, mask};
    }
  }
  return {from, 0};
}

}  // namespace

const Walks kReference = {survey_reference, sum_exp_reference, next_above_reference, next_contenders_reference};

}  // namespace foresay::scan_variants
