// kernels/int8_tile_avx512.h: the innermost loops of linear_int8() with 512-bit VNNI.
#pragma once

namespace foresay::kernels::FORESAY_LANES {

inline constexpr int kInt8TileRows = 8;  ///< rows of activations that stay in registers

/// Words of four bytes of sixteen rows, from 32 bytes of each.
[[gnu::always_inline]] inline void transpose_words(const std::uint8_t* rows, std::ptrdiff_t stride, __m512i* words) {
  // Rows j and j + 8 share a register: words 0-3 and 4-7 of the one, then of the other.
  __m512i v[8], t[8];
  for (int j = 0; j < 8; j += 4) {
    const std::uint8_t *low = rows + j * stride, *high = rows + (j + 8) * stride;
    asm("" : "+r"(low), "+r"(high));  // else GCC keeps more multiples of the stride than it has registers for
    for (int i = 0; i < 4; ++i, low += stride, high += stride) {
      const __m256i both[2] = {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(low)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(high))};
      v[j + i] = _mm512_inserti64x4(_mm512_castsi256_si512(both[0]), both[1], 1);
    }
  }
  for (int j = 0; j < 8; j += 2) {
    t[j] = _mm512_unpacklo_epi32(v[j], v[j + 1]);
    t[j + 1] = _mm512_unpackhi_epi32(v[j], v[j + 1]);
  }
  for (int j = 0; j < 8; j += 4) {  // words 0 .. 3, beside them 4 .. 7, of four rows and of the four eight later
    v[j] = _mm512_unpacklo_epi64(t[j], t[j + 2]);
    v[j + 1] = _mm512_unpackhi_epi64(t[j], t[j + 2]);
    v[j + 2] = _mm512_unpacklo_epi64(t[j + 1], t[j + 3]);
    v[j + 3] = _mm512_unpackhi_epi64(t[j + 1], t[j + 3]);
  }
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13),
                second = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
  for (int j = 0; j < 4; ++j) {
    words[j] = _mm512_permutex2var_epi64(v[j], first, v[j + 4]);
    words[j + 4] = _mm512_permutex2var_epi64(v[j], second, v[j + 4]);
  }
}

inline void interleave(const std::uint8_t* rows, std::ptrdiff_t stride, std::uint8_t* out) {
  __m512i words[8];
  transpose_words(rows, stride, words);
  for (int d = 0; d < 8; ++d) _mm512_storeu_si512(out + 64 * d, words[d]);
}

template <int Words>
[[gnu::always_inline]] inline void load_words(CodeWords codes, __m512i* words) {
  for (int d = 0; d < Words; ++d) words[d] = _mm512_loadu_si512(codes.at + d * kWord);
}
template <int Words>
[[gnu::always_inline]] inline void load_words(CodeRows codes, __m512i* words) {
  for (int d = 0; d < Words; d += 8) transpose_words(codes.at + 4 * d, codes.stride, words + d);
}

/// Sums of R rows of activations. Each row has two, so that one addition need not wait for the other.
template <int R>
struct Sums {
  __m512i even[R], odd[R];
  Sums() {
    for (int r = 0; r < R; ++r) even[r] = odd[r] = _mm512_setzero_si512();
  }
  void to_lanes(Lanes (&products)[R]) const {
    for (int r = 0; r < R; ++r) products[r].v = _mm512_cvtepi32_ps(_mm512_add_epi32(even[r], odd[r]));
  }
};
/// Adds products of codes with four activations, which the instruction itself lays beside every word: GCC would load
/// them into a register first.
[[gnu::always_inline]] inline __m512i add_products(__m512i sum, __m512i codes, const std::int8_t* x) {
  struct [[gnu::packed, gnu::may_alias]] Four {
    std::int32_t word;
  };
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(codes), "m"(*reinterpret_cast<const Four*>(x)));
  return sum;
}

/// R rows of activations. Each has its own pointer, else GCC keeps every sum of a multiple of the stride and an offset.
template <int R>
struct ActivationRows {
  const std::int8_t* at[R];
  [[gnu::always_inline]] ActivationRows(const std::int8_t* x, std::ptrdiff_t stride) {
    for (int r = 0; r < R; ++r, x += stride) {
      asm("" : "+r"(x));
      at[r] = x;
    }
  }
};

template <int R, int Words, typename Codes>
[[gnu::always_inline]] inline void nibble_products(
    Codes codes, const std::int8_t* x, std::ptrdiff_t stride, Lanes (&products)[R]) {
  const __m512i nibble = _mm512_set1_epi8(15);
  __m512i words[Words];
  load_words<Words>(codes, words);
  const ActivationRows<R> rows(x, stride);
  Sums<R> sums;
#pragma GCC unroll 8
  for (int d = 0; d < Words; ++d) {
    codes.ask_for(d);
    const __m512i low = _mm512_and_si512(words[d], nibble);
    const __m512i high = _mm512_andnot_si512(nibble, words[d]);  // sixteen times the code
    for (int r = 0; r < R; ++r) {
      sums.even[r] = add_products(sums.even[r], low, rows.at[r] + 8 * d);
      sums.odd[r] = add_products(sums.odd[r], high, rows.at[r] + 8 * d + 4);
    }
  }
  for (auto& sum : sums.odd) sum = _mm512_srai_epi32(sum, 4);
  sums.to_lanes(products);
}

template <int R, int Words, typename Codes>
[[gnu::always_inline]] inline void byte_products(
    Codes codes, const std::int8_t* x, std::ptrdiff_t stride, Lanes (&products)[R]) {
  const ActivationRows<R> rows(x, stride);
  Sums<R> sums;
#pragma GCC unroll 2
  for (int first = 0; first < Words; first += 8) {
    __m512i words[8];
    load_words<8>(codes.behind(first), words);
#pragma GCC unroll 8
    for (int d = 0; d < 8; d += 2) {
      codes.ask_for(first + d);
      codes.ask_for(first + d + 1);
      for (int r = 0; r < R; ++r) {
        const std::int8_t* p = rows.at[r] + 4 * (first + d);
        sums.even[r] = add_products(sums.even[r], words[d], p);
        sums.odd[r] = add_products(sums.odd[r], words[d + 1], p + 4);
      }
    }
  }
  sums.to_lanes(products);
}

}  // namespace foresay::kernels::FORESAY_LANES
