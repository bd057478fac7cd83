#include "decode/sample/scan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "decode/sample/scan_variants.h"

namespace foresay {
namespace scan_variants {

const Walks& walks_of(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx2:
    case Isa::avx_vnni:
      return kAvx2;
    case Isa::avx512:
      return kAvx512;
#endif
    default:
      return kReference;
  }
}

std::vector<const Walks*> available() {
  std::vector<const Walks*> all;
  for (const Isa isa : available_isas()) all.push_back(&walks_of(isa));
  return all;
}

}  // namespace scan_variants

namespace {

const scan_variants::Walks& walks() {
  return scan_variants::walks_of(current_isa());
}

}  // namespace

Survey survey(std::span<const float> row) {
  return walks().survey(row);
}

double sum_exp(std::span<const float> row, double peak, double scale) {
  return walks().sum_exp(row, peak, scale);
}

Hits next_above(std::span<const float> row, std::size_t from, float border) {
  return walks().next_above(row, from, border);
}

Contest contest(const PhiloxInputs& noise, float peak, double temperature, double best) {
  constexpr double kLog2e = 1.4426950408889634, kMargin = 1e-3;
  constexpr double kMostScale = std::numeric_limits<float>::max();  // a lesser scale bounds from above
  constexpr double kEveryColumn = 1e4;
  // 127 is the exponent's bias in a float, 31 makes the bound a count of 2^-31.
  const double bias = best > -kEveryColumn ? 127 + 31 + kMargin - best * kLog2e : kEveryColumn;
  return {noise, peak, static_cast<float>(std::min(kLog2e / temperature, kMostScale)), static_cast<float>(bias)};
}

Hits next_contenders(std::span<const float> row, std::size_t from, const Contest& contest) {
  return walks().next_contenders(row, from, contest);
}

}  // namespace foresay
