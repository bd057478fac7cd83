// AVX2 and FMA. Both long walks are bound by arithmetic; a row comes from the second-level cache. Noise: eight
// instructions per round of Philox for sixteen columns (one makes four 32 x 32 -> 64 products), 0.23 ms for 248320
// columns on a Sapphire Rapids. Sums of exponentials: 19 multiplies, adds and fmas of doubles for four columns, 0.22
// ms.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "decode/sample/exponential.h"
#include "decode/sample/scan_variants.h"

namespace foresay::scan_variants {
namespace {

#define FORESAY_AVX2 __attribute__((target("avx2,fma")))

constexpr float kInfinity = std::numeric_limits<float>::infinity();

FORESAY_AVX2 inline float highest_of(__m256 x) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

/// The highest of at most kBlock values.
FORESAY_AVX2 inline float highest_of(const float* x, std::size_t n) {
  float best = -kInfinity;
  std::size_t i = 0;
  if (n >= 16) {
    __m256 even = _mm256_loadu_ps(x), odd = _mm256_loadu_ps(x + 8);
    for (i = 16; i + 16 <= n; i += 16) {
      even = _mm256_max_ps(even, _mm256_loadu_ps(x + i));
      odd = _mm256_max_ps(odd, _mm256_loadu_ps(x + i + 8));
    }
    best = highest_of(_mm256_max_ps(even, odd));
  }
  for (; i < n; ++i) best = std::max(best, x[i]);
  return best;
}

FORESAY_AVX2 Survey survey_avx2(std::span<const float> row) {
  constexpr std::size_t kStretch = 1024;
  const float* x = row.data();
  const __m256 infinity = _mm256_set1_ps(kInfinity);
  __m256 usable = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
  bool is_usable = true;
  float best = -kInfinity;
  std::size_t stretch = 0;  // where the highest value was first seen
  for (std::size_t begin = 0; begin < row.size(); begin += kStretch) {
    const std::size_t end = std::min(begin + kStretch, row.size());
    __m256 highest[4];
    for (__m256& each : highest) each = _mm256_set1_ps(-kInfinity);
    std::size_t i = begin;
    for (; i + 32 <= end; i += 32) {
      for (std::size_t part = 0; part < 4; ++part) {
        const __m256 values = _mm256_loadu_ps(x + i + 8 * part);
        highest[part] = _mm256_max_ps(highest[part], values);
        usable = _mm256_and_ps(usable, _mm256_cmp_ps(values, infinity, _CMP_LT_OQ));
      }
    }
    float here =
        highest_of(_mm256_max_ps(_mm256_max_ps(highest[0], highest[1]), _mm256_max_ps(highest[2], highest[3])));
    for (; i < end; ++i) {
      here = x[i] > here ? x[i] : here;
      is_usable = is_usable && x[i] < kInfinity;
    }
    if (here > best) {
      best = here;
      stretch = begin;
    }
  }
  Survey found;
  found.is_usable = is_usable && _mm256_movemask_ps(usable) == 0xff;
  while (stretch < row.size() && x[stretch] != best) ++stretch;
  found.peak = stretch < row.size() ? stretch : 0;
  return found;
}

/// exp_in_range() of four.
FORESAY_AVX2 inline __m256d exp_in_range(__m256d x) {
  using namespace exponential;
  const __m256d rounder = _mm256_set1_pd(kRounder);
  const __m256d shifted = _mm256_fmadd_pd(x, _mm256_set1_pd(kLog2e), rounder);
  const __m256d k = _mm256_sub_pd(shifted, rounder);
  const __m256d high = _mm256_fmadd_pd(k, _mm256_set1_pd(-kLn2High), x);
  const __m256d r = _mm256_fmadd_pd(k, _mm256_set1_pd(-kLn2Low), high);
  __m256d p = _mm256_set1_pd(kP[10]);
  for (int i = 9; i >= 0; --i) p = _mm256_fmadd_pd(p, r, _mm256_set1_pd(kP[i]));
  const __m256i exponent = _mm256_slli_epi64(_mm256_castpd_si256(shifted), 52);
  return _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(p), exponent));
}

FORESAY_AVX2 double sum_exp_avx2(std::span<const float> row, double peak, double scale) {
  const __m256d peaks = _mm256_set1_pd(peak), scales = _mm256_set1_pd(scale),
                least = _mm256_set1_pd(exponential::kLeast);
  __m256d sums[4];
  for (__m256d& each : sums) each = _mm256_setzero_pd();
  std::size_t i = 0;
  for (; i + 16 <= row.size(); i += 16) {
    for (std::size_t part = 0; part < 4; ++part) {
      const __m256d value = _mm256_cvtps_pd(_mm_loadu_ps(row.data() + i + 4 * part));
      const __m256d x = _mm256_mul_pd(_mm256_sub_pd(value, peaks), scales);
      sums[part] = _mm256_add_pd(sums[part], exp_in_range(_mm256_max_pd(x, least)));
    }
  }
  std::array<double, 16> all;
  for (std::size_t part = 0; part < 4; ++part) _mm256_storeu_pd(all.data() + 4 * part, sums[part]);
  for (std::size_t lane = 0; i < row.size(); ++i, ++lane) {
    const double x = (static_cast<double>(row[i]) - peak) * scale;
    all[lane] += _mm256_cvtsd_f64(exp_in_range(_mm256_set1_pd(std::max(x, exponential::kLeast))));
  }
  return fold(all);
}

FORESAY_AVX2 Hits next_above_avx2(std::span<const float> row, std::size_t from, float border) {
  const __m256 borders = _mm256_set1_ps(border);
  for (; from + kHitGroup <= row.size(); from += kHitGroup) {
    __m256 above[8], any = _mm256_setzero_ps();
    for (std::size_t part = 0; part < 8; ++part) {
      above[part] = _mm256_cmp_ps(_mm256_loadu_ps(row.data() + from + 8 * part), borders, _CMP_GT_OQ);
      any = _mm256_or_ps(any, above[part]);
    }
    if (_mm256_testz_ps(any, any) != 0) continue;
    std::uint64_t mask = 0;
    for (std::size_t part = 0; part < 8; ++part) {
      mask |= static_cast<std::uint64_t>(_mm256_movemask_ps(above[part])) << (8 * part);
    }
    return {from, mask};
  }
  return kReference.next_above(row, from, border);
}

/// Philox for sixteen columns: words 0 to 3 of counter c in the low halves of lane c of four registers.
struct Philox {
  FORESAY_AVX2 explicit Philox(const PhiloxInputs& inputs) {
    const RoundKeys keys(inputs.key);
    const PhiloxStart start(inputs, keys);
    third = _mm256_set1_epi64x(start.third);
    zeroth = _mm256_set1_epi64x(start.zeroth);
    second = _mm256_set1_epi64x(start.second);
    fixed = _mm256_set1_epi64x(start.fixed);
    for (std::size_t round = 2; round < 10; ++round) {
      low[round - 2] = _mm256_set1_epi64x(keys.low[round]);
      high[round - 2] = _mm256_set1_epi64x(keys.high[round]);
    }
  }

  /// The words of columns 4 * counter to 4 * counter + 31, in order. Two registers of counters go side by side: a
  /// round's operations wait for one another.
  FORESAY_AVX2 inline void words(std::uint32_t counter, __m256i* out) const {
    const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
    __m256i c0[2], c1[2], c2[2], c3[2];
    for (int i = 0; i < 2; ++i) {
      // In this order of counters the words of each end up next to each other.
      const __m256i counters = _mm256_add_epi64(
          _mm256_set1_epi64x(counter + 4 * static_cast<std::uint32_t>(i)), _mm256_set_epi64x(3, 1, 2, 0));
      const __m256i p = _mm256_mul_epu32(counters, m0);
      c1[i] = _mm256_mul_epu32(_mm256_xor_si256(_mm256_srli_epi64(p, 32), third), m1);
      c0[i] = _mm256_xor_si256(_mm256_srli_epi64(c1[i], 32), zeroth);
      c2[i] = _mm256_xor_si256(p, second);
      c3[i] = fixed;
    }
    for (std::size_t round = 0; round < 8; ++round) {
      for (int i = 0; i < 2; ++i) {
        // What lies in the upper halves never matters: products read the lower ones.
        const __m256i p0 = _mm256_mul_epu32(c0[i], m0), p1 = _mm256_mul_epu32(c2[i], m1);
        c0[i] = _mm256_xor_si256(_mm256_srli_epi64(p1, 32), _mm256_xor_si256(c1[i], low[round]));
        c2[i] = _mm256_xor_si256(_mm256_srli_epi64(p0, 32), _mm256_xor_si256(c3[i], high[round]));
        c1[i] = p1;
        c3[i] = p0;
      }
    }
    for (int i = 0; i < 2; ++i) {
      const __m256i front = _mm256_blend_epi32(c0[i], _mm256_slli_epi64(c1[i], 32), 0xaa);
      const __m256i back = _mm256_blend_epi32(c2[i], _mm256_slli_epi64(c3[i], 32), 0xaa);
      out[2 * i] = _mm256_unpacklo_epi64(front, back);
      out[2 * i + 1] = _mm256_unpackhi_epi64(front, back);
    }
  }

  __m256i third, zeroth, second, fixed;
  __m256i low[8], high[8];
};

FORESAY_AVX2 inline std::uint64_t at_least(__m256i words, __m256i least) {
  const __m256i passed = _mm256_cmpeq_epi32(_mm256_max_epu32(words, least), words);
  return static_cast<std::uint64_t>(_mm256_movemask_ps(_mm256_castsi256_ps(passed)));
}

FORESAY_AVX2 Hits next_contenders_avx2(std::span<const float> row, std::size_t from, const Contest& contest) {
  const Philox philox(contest.noise);
  while (from < row.size()) {
    const std::size_t end = std::min(row.size(), (from / kBlock + 1) * kBlock);
    const std::uint64_t word = least_word(highest_of(row.data() + from, end - from), contest);
    if (word > 0xffffffffu) {
      from = end;
      continue;
    }
    const __m256i least = _mm256_set1_epi32(static_cast<int>(static_cast<std::uint32_t>(word)));
    for (; from < end; from += kHitGroup) {
      std::uint64_t mask = 0;
      for (std::size_t half = 0; half < 2; ++half) {
        __m256i words[4];
        philox.words(static_cast<std::uint32_t>(from / 4 + 8 * half), words);
        const __m256i most =
            _mm256_max_epu32(_mm256_max_epu32(words[0], words[1]), _mm256_max_epu32(words[2], words[3]));
        if (at_least(most, least) == 0) continue;
        for (std::size_t part = 0; part < 4; ++part) mask |= at_least(words[part], least) << (32 * half + 8 * part);
      }
      if (end - from < kHitGroup) mask &= (std::uint64_t{1} << (end - from)) - 1;
      if (mask != 0) return {from, mask};
    }
  }
  return {from, 0};
}

}  // namespace

const Walks kAvx2 = {survey_avx2, sum_exp_avx2, next_above_avx2, next_contenders_avx2};

}  // namespace foresay::scan_variants
#endif
