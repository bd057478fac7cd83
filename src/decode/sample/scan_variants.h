// decode/sample/scan_variants.h: the walks of scan.h, one set per instruction set. All give the same bits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/cpu_features.h"
#include "decode/sample/scan.h"

namespace foresay::scan_variants {

struct Walks {
  Survey (*survey)(std::span<const float> row);
  double (*sum_exp)(std::span<const float> row, double peak, double scale);
  Hits (*next_above)(std::span<const float> row, std::size_t from, float border);
  Hits (*next_contenders)(std::span<const float> row, std::size_t from, const Contest& contest);
};

extern const Walks kReference;
#if defined(__x86_64__)
extern const Walks kAvx2;    ///< needs AVX2 and FMA
extern const Walks kAvx512;  ///< needs AVX-512 F, DQ, BW, VL
#endif

/// Those of an instruction set, which this machine must have; Arm has none of its own.
[[nodiscard]] const Walks& walks_of(Isa isa);

/// Of every set of this machine, weakest first; always begins with the reference.
[[nodiscard]] std::vector<const Walks*> available();

/// Columns whose highest value is looked at once before noise is made for them: most of a row then needs no more than
/// one comparison per word.
inline constexpr std::size_t kBlock = 256;

/// The least word of noise with which a column up to `value` can win, or 2^32 when none does.
///
/// A score of at least `best` needs -ln u <= e^t, with t how far (x - peak) / temperature lies above `best`. As
/// -ln u >= 1 - u = (v + 1/2) 2^-32 with v = 2^32 - 1 - word, it needs v <= 2^(32 + t log2 e). 2^z is bounded from
/// above by the float with exponent floor(z) and mantissa z - floor(z); the bias holds a margin far above rounding.
inline std::uint64_t least_word(float value, const Contest& contest) {
  const float z = (value - contest.peak) * contest.scale + contest.bias;
  if (!(z >= 125)) return std::uint64_t{1} << 32;  // 2^(t log2 e) below 2^-33: less than any 1 - u
  if (z >= 159) return 0;
  const float bound = std::bit_cast<float>(static_cast<std::int32_t>(z * 0x1p23f));
  const auto most = static_cast<std::uint64_t>(2 * bound);
  return most > 0xffffffffu ? 0 : 0xffffffffu - most;
}

/// The 16 interleaved sums, 8 apart, 4 apart, 2 apart, 1 apart.
inline double fold(std::array<double, 16> sums) {
  for (std::size_t apart = 8; apart > 0; apart /= 2) {
    for (std::size_t i = 0; i < apart; ++i) sums[i] += sums[i + apart];
  }
  return sums[0];
}

/// Round keys of Philox4x32-10.
struct RoundKeys {
  explicit RoundKeys(const std::array<std::uint32_t, 2>& key) {
    for (std::uint32_t round = 0; round < 10; ++round) {
      low[round] = key[0] + round * 0x9E3779B9u;
      high[round] = key[1] + round * 0xBB67AE85u;
    }
  }
  std::array<std::uint32_t, 10> low, high;
};

/// The first two rounds of Philox for counters that differ in word 0 alone: what of them does not depend on it. Behind
/// both, with p = kM0 * word 0 and m = kM1 * (high(p) ^ third), the words are high(m) ^ zeroth, low(m),
/// second ^ low(p), fixed.
struct PhiloxStart {
  PhiloxStart(const PhiloxInputs& in, const RoundKeys& keys) {
    const std::uint64_t constant = std::uint64_t{0xCD9E8D57u} * in.purpose;  // round 1 of words 2, 3
    third = in.choice ^ keys.high[0];
    const auto word0 = static_cast<std::uint32_t>(constant >> 32) ^ in.index ^ keys.low[0];
    const auto word1 = static_cast<std::uint32_t>(constant);
    const std::uint64_t product = std::uint64_t{0xD2511F53u} * word0;  // round 2 of words 0, 1
    zeroth = word1 ^ keys.low[1];
    second = static_cast<std::uint32_t>(product >> 32) ^ keys.high[1];
    fixed = static_cast<std::uint32_t>(product);
  }
  std::uint32_t third, zeroth, second, fixed;
};

}  // namespace foresay::scan_variants
