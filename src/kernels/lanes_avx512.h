// kernels/lanes_avx512.h: lanes_reference.h in one register.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/elements.h"

namespace foresay::kernels::FORESAY_LANES {

struct Lanes {
  __m512 v;
};

inline constexpr int kTileRows = 4;   ///< rows of x that linear() keeps in registers beside four weight rows
inline constexpr int kStateRows = 8;  ///< values of a state that gated_delta() works on together

inline __mmask16 first_mask(int n) {
  return static_cast<__mmask16>((1u << n) - 1u);
}

inline Lanes splat(float x) {
  return {_mm512_set1_ps(x)};
}
inline Lanes load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
inline Lanes load_part(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(first_mask(n), p)};
}
inline void store(float* p, Lanes x) {
  _mm512_storeu_ps(p, x.v);
}
inline void store_part(float* p, Lanes x, int n) {
  _mm512_mask_storeu_ps(p, first_mask(n), x.v);
}
inline Lanes load_bf16(const void* p) {
  const __m256i half = _mm256_loadu_si256(static_cast<const __m256i*>(p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
}

inline Lanes load_f16(const void* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
inline void twice_e2m1(const std::uint8_t* codes, std::int8_t* values) {
  const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kTwiceE2m1));
  const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(values), _mm_shuffle_epi8(table, some));
}
inline Lanes load_e4m3(const std::uint8_t* p) {
  const __m512i codes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m512i magnitude = _mm512_slli_epi32(_mm512_and_si512(codes, _mm512_set1_epi32(0x7f)), 20);
  const __m512i sign = _mm512_slli_epi32(_mm512_and_si512(codes, _mm512_set1_epi32(0x80)), 24);
  return {_mm512_mul_ps(_mm512_castsi512_ps(_mm512_or_si512(magnitude, sign)), _mm512_set1_ps(0x1p120f))};
}
inline Lanes load_int8(const std::int8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
inline Lanes load_u8(const std::uint8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}

inline Lanes operator+(Lanes a, Lanes b) {
  return {_mm512_add_ps(a.v, b.v)};
}
inline Lanes operator-(Lanes a, Lanes b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
inline Lanes operator*(Lanes a, Lanes b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
inline Lanes operator/(Lanes a, Lanes b) {
  return {_mm512_div_ps(a.v, b.v)};
}
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline Lanes min(Lanes a, Lanes b) {
  return {_mm512_min_ps(a.v, b.v)};
}
inline Lanes max(Lanes a, Lanes b) {
  return {_mm512_max_ps(a.v, b.v)};
}
inline Lanes abs(Lanes a) {
  return {_mm512_abs_ps(a.v)};
}
inline Lanes rounded(Lanes a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline Lanes power_of_two(Lanes n) {
  const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23))};
}
inline Lanes first_lanes(Lanes x, int n) {
  return {_mm512_maskz_mov_ps(first_mask(n), x.v)};
}

inline __m256 fold(Lanes x) {
  return _mm256_add_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
}
inline __m128 fold(__m256 x) {
  return _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
}
inline float sum(Lanes x) {
  const __m128 four = fold(fold(x));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline void sum_four(Lanes a, Lanes b, Lanes c, Lanes d, float* out) {
  // 8 and 4 apart in each, then transposed so that lanes 2 apart and 1 apart meet.
  const __m128 fa = fold(fold(a)), fb = fold(fold(b)), fc = fold(fold(c)), fd = fold(fold(d));
  const __m128 ab = _mm_add_ps(_mm_movelh_ps(fa, fb), _mm_movehl_ps(fb, fa));  // a0+a2 a1+a3 b0+b2 b1+b3
  const __m128 cd = _mm_add_ps(_mm_movelh_ps(fc, fd), _mm_movehl_ps(fd, fc));
  _mm_storeu_ps(out, _mm_add_ps(_mm_shuffle_ps(ab, cd, 0x88), _mm_shuffle_ps(ab, cd, 0xdd)));
}
inline float largest(Lanes x) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

inline void store_int8(std::int8_t* p, Lanes x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x.v)));
}
inline void store_bf16(std::uint16_t* p, Lanes x) {
  const __m512i bits = _mm512_castps_si512(x.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i near = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  const __mmask16 nan = _mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q);
  const __m512i all = _mm512_mask_or_epi32(near, nan, bits, _mm512_set1_epi32(0x400000));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(all, 16)));
}

}  // namespace foresay::kernels::FORESAY_LANES
