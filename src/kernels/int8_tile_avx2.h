// kernels/int8_tile_avx2.h: the innermost loops of linear_int8() in 256 bits: with VNNI where FORESAY_VNNI is defined,
// else by 16-bit sums of byte products.
#pragma once

namespace foresay::kernels::FORESAY_LANES {

/// Two floats, each in four lanes.
inline __m256 in_fours(const float* p) {
  double both;
  std::memcpy(&both, p, sizeof both);
  return _mm256_permutevar8x32_ps(_mm256_castpd_ps(_mm256_set1_pd(both)), _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
}

inline __m256i load_bytes(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

/// Lane sums of the products of a block of 4-bit codes. A code is at most 15, so four products fit 16 bits.
inline __m256i nibble_products(__m256i low, __m256i high, __m256i even, __m256i odd) {
#ifdef FORESAY_VNNI
  return _mm256_dpbusd_avx_epi32(_mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), low, even), high, odd);
#else
  const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(low, even), _mm256_maddubs_epi16(high, odd));
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}

/// Half of the lanes of a tile: the first blocks of each pair, or the second.
template <int W, int R>
inline void nibble_half(const Int8Tile& x, const WeightTile<W>& w, int first, __m256 (&acc)[W][R]) {
  const __m256i nibble = _mm256_set1_epi8(15);
  for (int j = 0; j < W; ++j) {
    for (int r = 0; r < R; ++r) acc[j][r] = _mm256_setzero_ps();
  }
  for (int b = first; b < x.in / kInt8Block; b += 2) {
    __m256i low[W], high[W];
    __m256 scale[W];
    for (int j = 0; j < W; ++j) {
      prefetch(w.codes[j] + 32 * b);
      const __m256i codes = load_bytes(w.codes[j] + 32 * b);
      low[j] = _mm256_and_si256(codes, nibble);
      high[j] = _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble);
      scale[j] = in_fours(w.scales[j] + 2 * b);
    }
    for (int r = 0; r < R; ++r) {
      const std::int8_t* p = x.codes + r * x.code_stride + kInt8Block * (b - first) + 32 * first;
      const __m256i even = load_bytes(p), odd = load_bytes(p + kInt8Block);
      const __m256 row_scale = _mm256_broadcast_ss(x.scales + r * x.scale_stride + b);
      for (int j = 0; j < W; ++j) {
        const __m256 products = _mm256_cvtepi32_ps(nibble_products(low[j], high[j], even, odd));
        acc[j][r] = _mm256_fmadd_ps(products, _mm256_mul_ps(scale[j], row_scale), acc[j][r]);
      }
    }
  }
}

template <int W, int R>
inline void nibble_tile(const Int8Tile& x, const WeightTile<W>& w, Lanes (&acc)[W][R]) {
  // Sixteen registers hold two weight rows at a time.
  constexpr int kStep = W % 2 == 0 ? 2 : 1;
  for (int j = 0; j < W; j += kStep) {
    WeightTile<kStep> part;
    for (int i = 0; i < kStep; ++i) {
      part.codes[i] = w.codes[j + i];
      part.scales[i] = w.scales[j + i];
    }
    __m256 half[kStep][R];
    nibble_half<kStep, R>(x, part, 0, half);
    for (int i = 0; i < kStep; ++i) {
      for (int r = 0; r < R; ++r) acc[j + i][r].low = half[i][r];
    }
    nibble_half<kStep, R>(x, part, 1, half);
    for (int i = 0; i < kStep; ++i) {
      for (int r = 0; r < R; ++r) acc[j + i][r].high = half[i][r];
    }
  }
}

#ifdef FORESAY_VNNI
/// Codes less 128, and what the unsigned side of the product, activations + 128, makes too much.
struct ByteCodes {
  __m256i codes, excess;
  explicit ByteCodes(const std::uint8_t* p) : codes(_mm256_xor_si256(load_bytes(p), _mm256_set1_epi8(-128))) {
    const __m256i sum = _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(-128), codes);
    excess = _mm256_sub_epi32(_mm256_setzero_si256(), sum);
  }
  [[nodiscard]] __m256i products(__m256i values) const {
    return _mm256_dpbusd_avx_epi32(excess, _mm256_xor_si256(values, _mm256_set1_epi8(-128)), codes);
  }
};
#else
/// Codes less 128, and their magnitudes. A magnitude is at most 128 and an activation at most 127, so two products fit
/// 16 bits: 2 * 128 * 127 = 32512.
struct ByteCodes {
  __m256i codes, magnitude;
  explicit ByteCodes(const std::uint8_t* p)
      : codes(_mm256_xor_si256(load_bytes(p), _mm256_set1_epi8(-128))), magnitude(_mm256_abs_epi8(codes)) {}
  [[nodiscard]] __m256i products(__m256i values) const {
    const __m256i pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(values, codes));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  }
};
#endif

template <int W, int R>
inline void byte_tile(const Int8Tile& x, const WeightTile<W>& w, Lanes (&acc)[W][R]) {
  for (int j = 0; j < W; ++j) {
    for (int r = 0; r < R; ++r) acc[j][r] = splat(0);
    for (int b = 0; b < x.in / kInt8Block; ++b) {
      prefetch(w.codes[j] + kInt8Block * b);
      const ByteCodes first(w.codes[j] + kInt8Block * b), second(w.codes[j] + kInt8Block * b + 32);
      const __m256 first_scale = _mm256_broadcast_ss(w.scales[j] + 2 * b);
      const __m256 second_scale = _mm256_broadcast_ss(w.scales[j] + 2 * b + 1);
      for (int r = 0; r < R; ++r) {
        const std::int8_t* p = x.codes + r * x.code_stride + kInt8Block * b;
        const __m256 row_scale = _mm256_broadcast_ss(x.scales + r * x.scale_stride + b);
        const __m256 low = _mm256_cvtepi32_ps(first.products(load_bytes(p)));
        const __m256 high = _mm256_cvtepi32_ps(second.products(load_bytes(p + 32)));
        acc[j][r].low = _mm256_fmadd_ps(low, _mm256_mul_ps(first_scale, row_scale), acc[j][r].low);
        acc[j][r].high = _mm256_fmadd_ps(high, _mm256_mul_ps(second_scale, row_scale), acc[j][r].high);
      }
    }
  }
}

}  // namespace foresay::kernels::FORESAY_LANES
