// kernels/lanes_avx2.h: lanes_reference.h in two registers.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/elements.h"

namespace foresay::kernels::FORESAY_LANES {

struct Lanes {
  __m256 low, high;
};

inline constexpr int kTileRows = 1;   ///< rows of x that linear() keeps in registers beside four weight rows
inline constexpr int kStateRows = 4;  ///< values of a state that gated_delta() works on together

inline Lanes splat(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
inline Lanes load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
inline Lanes load_part(const float* p, int n) {
  float all[16] = {};
  std::memcpy(all, p, static_cast<std::size_t>(n) * sizeof(float));
  return load(all);
}
inline void store(float* p, Lanes x) {
  _mm256_storeu_ps(p, x.low);
  _mm256_storeu_ps(p + 8, x.high);
}
inline void store_part(float* p, Lanes x, int n) {
  float all[16];
  store(all, x);
  std::memcpy(p, all, static_cast<std::size_t>(n) * sizeof(float));
}
inline Lanes load_bf16(const void* p) {
  const auto* half = static_cast<const __m128i*>(p);
  const __m256i low = _mm256_cvtepu16_epi32(_mm_loadu_si128(half));
  const __m256i high = _mm256_cvtepu16_epi32(_mm_loadu_si128(half + 1));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(low, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(high, 16))};
}

inline Lanes load_f16(const void* p) {
  const auto* half = static_cast<const __m128i*>(p);
  return {_mm256_cvtph_ps(_mm_loadu_si128(half)), _mm256_cvtph_ps(_mm_loadu_si128(half + 1))};
}
inline void twice_e2m1(const std::uint8_t* codes, std::int8_t* values) {
  const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kTwiceE2m1));
  const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(values), _mm_shuffle_epi8(table, some));
}
inline __m256 from_e4m3_codes(__m256i codes) {
  const __m256i magnitude = _mm256_slli_epi32(_mm256_and_si256(codes, _mm256_set1_epi32(0x7f)), 20);
  const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(codes, _mm256_set1_epi32(0x80)), 24);
  return _mm256_mul_ps(_mm256_castsi256_ps(_mm256_or_si256(magnitude, sign)), _mm256_set1_ps(0x1p120f));
}
inline Lanes load_e4m3(const std::uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {
      from_e4m3_codes(_mm256_cvtepu8_epi32(bytes)), from_e4m3_codes(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))};
}
inline Lanes load_int8(const std::int8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
      _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
inline Lanes load_u8(const std::uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
      _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))};
}

inline Lanes operator+(Lanes a, Lanes b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
inline Lanes operator-(Lanes a, Lanes b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
inline Lanes operator*(Lanes a, Lanes b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
inline Lanes operator/(Lanes a, Lanes b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
inline Lanes min(Lanes a, Lanes b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
inline Lanes max(Lanes a, Lanes b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
inline Lanes abs(Lanes a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
}
inline Lanes rounded(Lanes a) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(a.low, kNearest), _mm256_round_ps(a.high, kNearest)};
}
inline __m256 power_of_two(__m256 n) {
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
}
inline Lanes power_of_two(Lanes n) {
  return {power_of_two(n.low), power_of_two(n.high)};
}
inline Lanes first_lanes(Lanes x, int n) {
  float all[16];
  store(all, x);
  return load_part(all, n);
}

inline __m128 fold(Lanes x) {
  const __m256 eight = _mm256_add_ps(x.low, x.high);
  return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
}
inline float sum(Lanes x) {
  const __m128 four = fold(x), two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline void sum_four(Lanes a, Lanes b, Lanes c, Lanes d, float* out) {
  // 8 and 4 apart in each, then transposed so that lanes 2 apart and 1 apart meet.
  const __m128 fa = fold(a), fb = fold(b), fc = fold(c), fd = fold(d);
  const __m128 ab = _mm_add_ps(_mm_movelh_ps(fa, fb), _mm_movehl_ps(fb, fa));  // a0+a2 a1+a3 b0+b2 b1+b3
  const __m128 cd = _mm_add_ps(_mm_movelh_ps(fc, fd), _mm_movehl_ps(fd, fc));
  _mm_storeu_ps(out, _mm_add_ps(_mm_shuffle_ps(ab, cd, 0x88), _mm_shuffle_ps(ab, cd, 0xdd)));
}
inline float largest(Lanes x) {
  const __m256 eight = _mm256_max_ps(x.low, x.high);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

inline void store_int8(std::int8_t* p, Lanes x) {
  const __m256i pairs = _mm256_packs_epi32(_mm256_cvtps_epi32(x.low), _mm256_cvtps_epi32(x.high));
  const __m256i order = _mm256_permute4x64_epi64(pairs, 0xd8);  // packs works within 128-bit halves
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(order), _mm256_extracti128_si256(order, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}
inline __m256i bf16_bits(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i near = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(near, quiet, nan), 16);
}
inline void store_bf16(std::uint16_t* p, Lanes x) {
  const __m256i pairs = _mm256_packus_epi32(bf16_bits(x.low), bf16_bits(x.high));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(pairs, 0xd8));
}

}  // namespace foresay::kernels::FORESAY_LANES
