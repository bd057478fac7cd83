// decode/sample/exponential.h: e^x of weights, the same bits one at a time and in vectors.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace foresay {

/// e^x = 2^k P(r) with k = round(x / ln 2), r = x - k ln 2 in two parts, and P the minimax polynomial of degree 10 on
/// |r| <= ln 2 / 2 (truncation 2.1e-16). Every step is one operation of IEEE doubles or one fma, so a scalar and any
/// vector give the same bits. Relative error below 1e-15 for x in [kLeast, 0].
namespace exponential {
inline constexpr double kLeast = -708;  ///< 2^k P(r) is a normal number from here on
inline constexpr double kLog2e = 0x1.71547652b82fep+0;
inline constexpr double kRounder = 0x1.8p52;  ///< added and taken away it rounds to a whole number
inline constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45;
inline constexpr double kP[] = {1.0, 0x1.000000000001dp+0, 0x1.ffffffffffe17p-2, 0x1.555555554bbeap-3,
    0x1.5555555593488p-5, 0x1.1111112d4dc0ep-7, 0x1.6c16c0c09358bp-10, 0x1.a0197a40e29acp-13, 0x1.a01b6d068fbd3p-16,
    0x1.72f993a8699bap-19, 0x1.2727a0b116cfap-22};
}  // namespace exponential

/// e^x for x in [kLeast, 0].
[[nodiscard]] inline double exp_in_range(double x) {
  using namespace exponential;
  const double shifted = std::fma(x, kLog2e, kRounder);
  const double k = shifted - kRounder;
  const double r = std::fma(k, -kLn2Low, std::fma(k, -kLn2High, x));
  double p = kP[10];
  for (int i = 9; i >= 0; --i) p = std::fma(p, r, kP[i]);
  // The low bits of `shifted` are k; they go into the exponent.
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(p) + (std::bit_cast<std::uint64_t>(shifted) << 52));
}

/// e^x for x <= 0 and -inf; 0 below the normal range, where divided by a total it could round to 0.
[[nodiscard]] inline double weight_of(double x) {
  if (x >= exponential::kLeast) return exp_in_range(x);
  const double tiny = std::exp(x);
  return tiny < std::numeric_limits<double>::min() ? 0.0 : tiny;
}

}  // namespace foresay
