// kernels/int8_tile_avx512.h: the innermost loops of linear_int8() with 512-bit VNNI.
#pragma once

namespace foresay::kernels::FORESAY_LANES {

/// Four floats, each in four lanes.
inline __m512 in_fours(const float* p) {
  const __m512i index = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  return _mm512_permutexvar_ps(index, _mm512_castps128_ps512(_mm_loadu_ps(p)));
}
/// Two floats, each in eight lanes.
inline __m512 in_eights(const float* p) {
  const __m512i index = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  double both;
  std::memcpy(&both, p, sizeof both);
  return _mm512_permutexvar_ps(index, _mm512_castps128_ps512(_mm_castpd_ps(_mm_set_sd(both))));
}

template <int W, int R>
inline void nibble_tile(const Int8Tile& x, const WeightTile<W>& w, Lanes (&acc)[W][R]) {
  const __m512i nibble = _mm512_set1_epi8(15);
  for (int j = 0; j < W; ++j) {
    for (int r = 0; r < R; ++r) acc[j][r].v = _mm512_setzero_ps();
  }
  const int blocks = x.in / kInt8Block;
  for (int b = 0; b < blocks; b += 2) {
    __m512i low[W], high[W];
    __m512 scale[W];
    for (int j = 0; j < W; ++j) {
      const std::uint8_t* p = w.codes[j] + 32 * b;
      prefetch(p);
      // A block without a second one: its scale and activations are zeros.
      const __m512i codes = b + 2 <= blocks
                                ? _mm512_loadu_si512(p)
                                : _mm512_zextsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
      low[j] = _mm512_and_si512(codes, nibble);
      high[j] = _mm512_and_si512(_mm512_srli_epi16(codes, 4), nibble);
      scale[j] = in_fours(w.scales[j] + 2 * b);
    }
    for (int r = 0; r < R; ++r) {
      const std::int8_t* p = x.codes + r * x.code_stride + kInt8Block * b;
      const __m512i even = _mm512_loadu_si512(p), odd = _mm512_loadu_si512(p + kInt8Block);
      const __m512 row_scale = in_eights(x.scales + r * x.scale_stride + b);
      for (int j = 0; j < W; ++j) {
        const __m512i products =
            _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), low[j], even), high[j], odd);
        acc[j][r].v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products), _mm512_mul_ps(scale[j], row_scale), acc[j][r].v);
      }
    }
  }
}

template <int W, int R>
inline void byte_tile(const Int8Tile& x, const WeightTile<W>& w, Lanes (&acc)[W][R]) {
  // The instruction multiplies unsigned by signed: with activations + 128 for the unsigned side, 128 times the sum of
  // the codes is too much, and that belongs to the weights alone.
  const __m512i flip = _mm512_set1_epi8(-128);
  for (int j = 0; j < W; ++j) {
    for (int r = 0; r < R; ++r) acc[j][r].v = _mm512_setzero_ps();
  }
  for (int b = 0; b < x.in / kInt8Block; ++b) {
    __m512i codes[W], excess[W];
    __m512 scale[W];
    for (int j = 0; j < W; ++j) {
      prefetch(w.codes[j] + kInt8Block * b);
      codes[j] = _mm512_xor_si512(_mm512_loadu_si512(w.codes[j] + kInt8Block * b), flip);
      excess[j] = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_dpbusd_epi32(_mm512_setzero_si512(), flip, codes[j]));
      scale[j] = in_eights(w.scales[j] + 2 * b);
    }
    for (int r = 0; r < R; ++r) {
      const std::int8_t* p = x.codes + r * x.code_stride + kInt8Block * b;
      const __m512i values = _mm512_xor_si512(_mm512_loadu_si512(p), flip);
      const __m512 row_scale = _mm512_set1_ps(x.scales[r * x.scale_stride + b]);
      for (int j = 0; j < W; ++j) {
        const __m512i products = _mm512_dpbusd_epi32(excess[j], values, codes[j]);
        acc[j][r].v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products), _mm512_mul_ps(scale[j], row_scale), acc[j][r].v);
      }
    }
  }
}

}  // namespace foresay::kernels::FORESAY_LANES
