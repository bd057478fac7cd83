// AVX2: eight values at a time for the formats that models are mostly stored in. Multiply and add stay apart (no FMA),
// so the bits are those of the reference, which does the other formats.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/unpack_row_variants.h"

namespace foresay::kernels {
namespace {

#define FORESAY_AVX2 __attribute__((target("avx2")))

FORESAY_AVX2 void unpack_bf16(const std::uint8_t* from, int n, float* row) {
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 2 * i));
    const __m256i words = _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16);
    _mm256_storeu_ps(row + i, _mm256_castsi256_ps(words));
  }
  for (; i < n; ++i) row[i] = from_bf16(load<std::uint16_t>(from, static_cast<std::size_t>(i)));
}

/// The low eight bytes of `codes` -> scale * code + bias.
FORESAY_AVX2 inline void store_eight(__m128i codes, __m256 scale, __m256 bias, float* values) {
  const __m256 code = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(codes));
  _mm256_storeu_ps(values, _mm256_add_ps(_mm256_mul_ps(scale, code), bias));
}

/// count: a multiple of 32, as every group is.
FORESAY_AVX2 void unpack_codes4(const std::uint8_t* codes, int count, float scale, float bias, float* values) {
  const __m256 s = _mm256_set1_ps(scale), b = _mm256_set1_ps(bias);
  const __m128i nibble = _mm_set1_epi8(15);
  for (int i = 0; i < count; i += 32, codes += 16, values += 32) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
    const __m128i even = _mm_and_si128(bytes, nibble), odd = _mm_and_si128(_mm_srli_epi16(bytes, 4), nibble);
    const __m128i first = _mm_unpacklo_epi8(even, odd), second = _mm_unpackhi_epi8(even, odd);
    store_eight(first, s, b, values);
    store_eight(_mm_srli_si128(first, 8), s, b, values + 8);
    store_eight(second, s, b, values + 16);
    store_eight(_mm_srli_si128(second, 8), s, b, values + 24);
  }
}

FORESAY_AVX2 void unpack_codes8(const std::uint8_t* codes, int count, float scale, float bias, float* values) {
  const __m256 s = _mm256_set1_ps(scale), b = _mm256_set1_ps(bias);
  for (int i = 0; i < count; i += 8) {
    store_eight(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + i)), s, b, values + i);
  }
}

}  // namespace

void unpack_row_avx2(const WeightView& w, int n, float* row) {
  if (w.type == WeightType::bf16) {
    const std::size_t first = static_cast<std::size_t>(n) * static_cast<std::size_t>(w.in);
    unpack_bf16(static_cast<const std::uint8_t*>(w.data) + 2 * first, w.in, row);
  } else if (w.type == WeightType::affine && (w.bits == 4 || w.bits == 8)) {
    const auto unpack = w.bits == 4 ? unpack_codes4 : unpack_codes8;
    for_each_group(w, n, row, [&w, unpack](const std::uint8_t* codes, float scale, float bias, float* values) {
      unpack(codes, w.group, scale, bias, values);
    });
  } else {
    unpack_row_reference(w, n, row);
  }
}

}  // namespace foresay::kernels
#endif
