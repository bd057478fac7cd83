// AVX-512: as AVX2 with twice the width, three-way exclusive or and comparisons into masks. Two ports do this
// arithmetic, so it is not twice as fast: 0.13 ms for the noise of 248320 columns, 0.14 ms for a sum of exponentials.
#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of the undefined operands in its own header, which no operation reads.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "decode/sample/exponential.h"
#include "decode/sample/scan_variants.h"

namespace foresay::scan_variants {
namespace {

#define FORESAY_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The highest of at most kBlock values.
FORESAY_AVX512 inline float highest_of(const float* x, std::size_t n) {
  __m512 even = _mm512_set1_ps(-kInfinity), odd = even;
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    even = _mm512_max_ps(even, _mm512_loadu_ps(x + i));
    odd = _mm512_max_ps(odd, _mm512_loadu_ps(x + i + 16));
  }
  float best = _mm512_reduce_max_ps(_mm512_max_ps(even, odd));
  for (; i < n; ++i) best = std::max(best, x[i]);
  return best;
}

FORESAY_AVX512 Survey survey_avx512(std::span<const float> row) {
  constexpr std::size_t kStretch = 1024;
  const float* x = row.data();
  const __m512 infinity = _mm512_set1_ps(kInfinity);
  bool is_usable = true;
  float best = -kInfinity;
  std::size_t stretch = 0;  // where the highest value was first seen
  for (std::size_t begin = 0; begin < row.size(); begin += kStretch) {
    const std::size_t end = std::min(begin + kStretch, row.size());
    __m512 even = _mm512_set1_ps(-kInfinity), odd = even;
    __mmask16 usable = 0xffff;
    std::size_t i = begin;
    for (; i + 32 <= end; i += 32) {
      const __m512 first = _mm512_loadu_ps(x + i), last = _mm512_loadu_ps(x + i + 16);
      even = _mm512_max_ps(even, first);
      odd = _mm512_max_ps(odd, last);
      usable = _mm512_mask_cmp_ps_mask(usable, first, infinity, _CMP_LT_OQ);
      usable = _mm512_mask_cmp_ps_mask(usable, last, infinity, _CMP_LT_OQ);
    }
    is_usable = is_usable && usable == 0xffff;
    float here = _mm512_reduce_max_ps(_mm512_max_ps(even, odd));
    for (; i < end; ++i) {
      here = x[i] > here ? x[i] : here;
      is_usable = is_usable && x[i] < kInfinity;
    }
    if (here > best) {
      best = here;
      stretch = begin;
    }
  }
  while (stretch < row.size() && x[stretch] != best) ++stretch;
  return {stretch < row.size() ? stretch : 0, is_usable};
}

/// exp_in_range() of eight.
FORESAY_AVX512 inline __m512d exp_in_range(__m512d x) {
  using namespace exponential;
  const __m512d rounder = _mm512_set1_pd(kRounder);
  const __m512d shifted = _mm512_fmadd_pd(x, _mm512_set1_pd(kLog2e), rounder);
  const __m512d k = _mm512_sub_pd(shifted, rounder);
  const __m512d high = _mm512_fmadd_pd(k, _mm512_set1_pd(-kLn2High), x);
  const __m512d r = _mm512_fmadd_pd(k, _mm512_set1_pd(-kLn2Low), high);
  __m512d p = _mm512_set1_pd(kP[10]);
  for (int i = 9; i >= 0; --i) p = _mm512_fmadd_pd(p, r, _mm512_set1_pd(kP[i]));
  const __m512i exponent = _mm512_slli_epi64(_mm512_castpd_si512(shifted), 52);
  return _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(p), exponent));
}

FORESAY_AVX512 double sum_exp_avx512(std::span<const float> row, double peak, double scale) {
  const __m512d peaks = _mm512_set1_pd(peak), scales = _mm512_set1_pd(scale),
                least = _mm512_set1_pd(exponential::kLeast);
  __m512d low = _mm512_setzero_pd(), high = low;
  std::size_t i = 0;
  for (; i + 16 <= row.size(); i += 16) {
    const __m512d first = _mm512_cvtps_pd(_mm256_loadu_ps(row.data() + i));
    const __m512d last = _mm512_cvtps_pd(_mm256_loadu_ps(row.data() + i + 8));
    low = _mm512_add_pd(low, exp_in_range(_mm512_max_pd(_mm512_mul_pd(_mm512_sub_pd(first, peaks), scales), least)));
    high = _mm512_add_pd(high, exp_in_range(_mm512_max_pd(_mm512_mul_pd(_mm512_sub_pd(last, peaks), scales), least)));
  }
  std::array<double, 16> all;
  _mm512_storeu_pd(all.data(), low);
  _mm512_storeu_pd(all.data() + 8, high);
  for (std::size_t lane = 0; i < row.size(); ++i, ++lane) {
    const double x = (static_cast<double>(row[i]) - peak) * scale;
    all[lane] += _mm512_cvtsd_f64(exp_in_range(_mm512_set1_pd(std::max(x, exponential::kLeast))));
  }
  return fold(all);
}

FORESAY_AVX512 Hits next_above_avx512(std::span<const float> row, std::size_t from, float border) {
  const __m512 borders = _mm512_set1_ps(border);
  for (; from + kHitGroup <= row.size(); from += kHitGroup) {
    std::uint64_t mask = 0;
    for (std::size_t part = 0; part < 4; ++part) {
      const __m512 values = _mm512_loadu_ps(row.data() + from + 16 * part);
      mask |= std::uint64_t{_mm512_cmp_ps_mask(values, borders, _CMP_GT_OQ)} << (16 * part);
    }
    if (mask != 0) return {from, mask};
  }
  return kReference.next_above(row, from, border);
}

/// Philox for 32 columns: words 0 to 3 of counter c in the low halves of lane c of four registers.
struct Philox {
  FORESAY_AVX512 explicit Philox(const PhiloxInputs& inputs) {
    const RoundKeys keys(inputs.key);
    const PhiloxStart start(inputs, keys);
    third = _mm512_set1_epi64(start.third);
    zeroth = _mm512_set1_epi64(start.zeroth);
    second = _mm512_set1_epi64(start.second);
    fixed = _mm512_set1_epi64(start.fixed);
    for (std::size_t round = 2; round < 10; ++round) {
      low[round - 2] = _mm512_set1_epi64(keys.low[round]);
      high[round - 2] = _mm512_set1_epi64(keys.high[round]);
    }
  }

  /// The words of columns 4 * counter to 4 * counter + 63, in order. Two registers of counters go side by side: a
  /// round's operations wait for one another.
  FORESAY_AVX512 inline void words(std::uint32_t counter, __m512i* out) const {
    constexpr int kXor3 = 0x96;
    const __m512i m0 = _mm512_set1_epi64(0xD2511F53), m1 = _mm512_set1_epi64(0xCD9E8D57);
    __m512i c0[2], c1[2], c2[2], c3[2];
    for (int i = 0; i < 2; ++i) {
      // In this order of counters the words of each end up next to each other.
      const __m512i counters = _mm512_add_epi64(
          _mm512_set1_epi64(counter + 8 * static_cast<std::uint32_t>(i)), _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0));
      const __m512i p = _mm512_mul_epu32(counters, m0);
      c1[i] = _mm512_mul_epu32(_mm512_xor_si512(_mm512_srli_epi64(p, 32), third), m1);
      c0[i] = _mm512_xor_si512(_mm512_srli_epi64(c1[i], 32), zeroth);
      c2[i] = _mm512_xor_si512(p, second);
      c3[i] = fixed;
    }
    for (std::size_t round = 0; round < 8; ++round) {
      for (int i = 0; i < 2; ++i) {
        // What lies in the upper halves never matters: products read the lower ones.
        const __m512i p0 = _mm512_mul_epu32(c0[i], m0), p1 = _mm512_mul_epu32(c2[i], m1);
        c0[i] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p1, 32), c1[i], low[round], kXor3);
        c2[i] = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p0, 32), c3[i], high[round], kXor3);
        c1[i] = p1;
        c3[i] = p0;
      }
    }
    for (int i = 0; i < 2; ++i) {
      const __m512i front = _mm512_mask_blend_epi32(0xaaaa, c0[i], _mm512_slli_epi64(c1[i], 32));
      const __m512i back = _mm512_mask_blend_epi32(0xaaaa, c2[i], _mm512_slli_epi64(c3[i], 32));
      out[2 * i] = _mm512_unpacklo_epi64(front, back);
      out[2 * i + 1] = _mm512_unpackhi_epi64(front, back);
    }
  }

  __m512i third, zeroth, second, fixed;
  __m512i low[8], high[8];
};

FORESAY_AVX512 Hits next_contenders_avx512(std::span<const float> row, std::size_t from, const Contest& contest) {
  const Philox philox(contest.noise);
  while (from < row.size()) {
    const std::size_t end = std::min(row.size(), (from / kBlock + 1) * kBlock);
    const std::uint64_t word = least_word(highest_of(row.data() + from, end - from), contest);
    if (word > 0xffffffffu) {
      from = end;
      continue;
    }
    const __m512i least = _mm512_set1_epi32(static_cast<int>(static_cast<std::uint32_t>(word)));
    for (; from < end; from += kHitGroup) {
      __m512i words[4];
      philox.words(static_cast<std::uint32_t>(from / 4), words);
      std::uint64_t mask = 0;
      for (int part = 0; part < 4; ++part) {
        mask |= std::uint64_t{_mm512_cmpge_epu32_mask(words[part], least)} << (16 * part);
      }
      if (end - from < kHitGroup) mask &= (std::uint64_t{1} << (end - from)) - 1;
      if (mask != 0) return {from, mask};
    }
  }
  return {from, 0};
}

}  // namespace

const Walks kAvx512 = {survey_avx512, sum_exp_avx512, next_above_avx512, next_contenders_avx512};

}  // namespace foresay::scan_variants
#endif
