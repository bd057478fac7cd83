// kernels/int8_tile_avx2.h: the innermost loops of linear_int8() in 256 bits: with VNNI where FORESAY_VNNI is defined,
// else by 16-bit sums of byte products.
#pragma once

namespace foresay::kernels::FORESAY_LANES {

inline constexpr int kInt8TileRows = 4;  ///< rows of activations that stay in registers

/// Words of four bytes of eight rows, from 16 bytes of each: v[word], rows in order.
[[gnu::always_inline]] inline void transpose_words(const std::uint8_t* rows, std::ptrdiff_t stride, __m256i (&v)[4]) {
  __m256i pair[4], t[4];
  for (int j = 0; j < 4; ++j) {  // rows j and j + 4 share a register
    const auto half = [&](int row) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + row * stride)); };
    pair[j] = _mm256_inserti128_si256(_mm256_castsi128_si256(half(j)), half(j + 4), 1);
  }
  t[0] = _mm256_unpacklo_epi32(pair[0], pair[1]);
  t[1] = _mm256_unpackhi_epi32(pair[0], pair[1]);
  t[2] = _mm256_unpacklo_epi32(pair[2], pair[3]);
  t[3] = _mm256_unpackhi_epi32(pair[2], pair[3]);
  v[0] = _mm256_unpacklo_epi64(t[0], t[2]);
  v[1] = _mm256_unpackhi_epi64(t[0], t[2]);
  v[2] = _mm256_unpacklo_epi64(t[1], t[3]);
  v[3] = _mm256_unpackhi_epi64(t[1], t[3]);
}

/// Words of four bytes of sixteen rows, from 32 bytes of each: out[word][row].
inline void interleave(const std::uint8_t* rows, std::ptrdiff_t stride, std::uint8_t* out) {
  for (int eight = 0; eight < 2; ++eight) {
    for (int half = 0; half < 2; ++half) {
      __m256i v[4];
      transpose_words(rows + 8 * eight * stride + 16 * half, stride, v);
      for (int d = 0; d < 4; ++d) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 64 * (4 * half + d) + 32 * eight), v[d]);
      }
    }
  }
}

/// Four words of eight rows, from word `first` on; eight: 0 or 1.
[[gnu::always_inline]] inline void load_words(CodeWords codes, int eight, int first, __m256i (&words)[4]) {
  for (int d = 0; d < 4; ++d) {
    const std::uint8_t* p = codes.at + kWord * static_cast<std::size_t>(first + d) + 32 * eight;
    words[d] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
}
[[gnu::always_inline]] inline void load_words(CodeRows codes, int eight, int first, __m256i (&words)[4]) {
  transpose_words(codes.at + 8 * eight * codes.stride + 4 * first, codes.stride, words);
}

/// Four activations beside every word.
inline __m256i in_every_word(const std::int8_t* p) {
  return _mm256_set1_epi32(word_at(p));
}

/// Four words of eight rows of 4-bit codes.
struct NibbleWords {
  static constexpr int kInputs = 8;  // of a word
  __m256i low[4], high[4];

  [[gnu::always_inline]] explicit NibbleWords(const __m256i (&words)[4]) {
    const __m256i nibble = _mm256_set1_epi8(15);
    for (int d = 0; d < 4; ++d) {
      low[d] = _mm256_and_si256(words[d], nibble);
      high[d] = _mm256_and_si256(_mm256_srli_epi16(words[d], 4), nibble);
    }
  }
  /// What they and a row of activations give, in lanes.
  [[nodiscard, gnu::always_inline]] __m256i products(const std::int8_t* x) const {
#ifdef FORESAY_VNNI
    __m256i even = _mm256_setzero_si256(), odd = _mm256_setzero_si256();
    for (int d = 0; d < 4; ++d) {
      even = _mm256_dpbusd_avx_epi32(even, low[d], in_every_word(x + 8 * d));
      odd = _mm256_dpbusd_avx_epi32(odd, high[d], in_every_word(x + 8 * d + 4));
    }
    return _mm256_add_epi32(even, odd);
#else
    // A pair of products of a code below 16 is at most 2 * 15 * 127 = 3810, so eight of them fit 16 bits.
    __m256i pairs = _mm256_maddubs_epi16(low[0], in_every_word(x));
    pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(high[0], in_every_word(x + 4)));
    for (int d = 1; d < 4; ++d) {
      pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(low[d], in_every_word(x + 8 * d)));
      pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(high[d], in_every_word(x + 8 * d + 4)));
    }
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
  }
};

/// Four words of eight rows of codes of one byte.
struct ByteWords {
  static constexpr int kInputs = 4;
  __m256i words[4];

  [[gnu::always_inline]] explicit ByteWords(const __m256i (&from)[4]) : words{from[0], from[1], from[2], from[3]} {}
  [[nodiscard, gnu::always_inline]] __m256i products(const std::int8_t* x) const {
#ifdef FORESAY_VNNI
    __m256i sum = _mm256_setzero_si256();
    for (int d = 0; d < 4; ++d) sum = _mm256_dpbusd_avx_epi32(sum, words[d], in_every_word(x + 4 * d));
    return sum;
#else
    // Taken as two codes of four bits, so that pairs fit 16 bits.
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i low = _mm256_setzero_si256(), high = low;
    for (int d = 0; d < 4; ++d) {
      const __m256i four = in_every_word(x + 4 * d);
      low = _mm256_add_epi16(low, _mm256_maddubs_epi16(_mm256_and_si256(words[d], nibble), four));
      high =
          _mm256_add_epi16(high, _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(words[d], 4), nibble), four));
    }
    return _mm256_add_epi32(
        _mm256_madd_epi16(low, _mm256_set1_epi16(1)), _mm256_madd_epi16(high, _mm256_set1_epi16(16)));
#endif
  }
};

/// Eight of the sixteen rows. Form is one of the two above.
template <typename Form, int R, int Words, typename Codes>
[[gnu::always_inline]] inline void eight_rows(
    Codes codes, int eight, const std::int8_t* x, std::ptrdiff_t stride, __m256 (&products)[R]) {
  __m256i sums[R];
#pragma GCC unroll 4
  for (int first = 0; first < Words; first += 4) {
    const int line = (eight * Words + first) / 2;  // four words of eight rows are as many bytes as two lines
    codes.ask_for(line);
    codes.ask_for(line + 1);
    __m256i words[4];
    load_words(codes, eight, first, words);
    const Form form(words);
    for (int r = 0; r < R; ++r) {
      const __m256i sum = form.products(x + r * stride + Form::kInputs * first);
      sums[r] = first == 0 ? sum : _mm256_add_epi32(sums[r], sum);
    }
  }
  for (int r = 0; r < R; ++r) products[r] = _mm256_cvtepi32_ps(sums[r]);
}

/// A block of rows as words in memory: transposing and multiplying several rows at once needs more than 16 registers.
template <int Words>
struct BlockWords {
  alignas(32) std::uint8_t bytes[static_cast<std::size_t>(Words) * kWord];

  explicit BlockWords(CodeRows codes) {
    for (int first = 0; first < Words; first += 8) {
      for (int d = first; d < first + 8; ++d) codes.ask_for(d);
      interleave(codes.at + 4 * first, codes.stride, bytes + static_cast<std::size_t>(first) * kWord);
    }
    asm("" : : "r"(bytes) : "memory");  // read them from there
  }
};

template <typename Form, int R, int Words, typename Codes>
[[gnu::always_inline]] inline void sixteen_rows(
    Codes codes, const std::int8_t* x, std::ptrdiff_t stride, Lanes (&products)[R]) {
  if constexpr (R > 1 && std::is_same_v<Codes, CodeRows>) {
    const BlockWords<Words> words(codes);
    sixteen_rows<Form, R, Words>(CodeWords{words.bytes, words.bytes}, x, stride, products);
  } else {
    __m256 low[R], high[R];
    eight_rows<Form, R, Words>(codes, 0, x, stride, low);
    asm("" : "+r"(x));  // read them again: the second half has no registers for what the first one read
    eight_rows<Form, R, Words>(codes, 1, x, stride, high);
    for (int r = 0; r < R; ++r) products[r] = {low[r], high[r]};
  }
}

#ifndef FORESAY_VNNI
/// A block of activations as 4-bit codes lie in a row: its even elements, and its odd ones.
struct NibbleInputs {
  __m256i even, odd;

  [[gnu::always_inline]] explicit NibbleInputs(const std::int8_t* x) {
    const __m256 a = _mm256_loadu_ps(reinterpret_cast<const float*>(x)),
                 b = _mm256_loadu_ps(reinterpret_cast<const float*>(x + 32));
    even = in_order(_mm256_shuffle_ps(a, b, 0x88));
    odd = in_order(_mm256_shuffle_ps(a, b, 0xdd));
  }

 private:
  static __m256i in_order(__m256 v) { return _mm256_permute4x64_epi64(_mm256_castps_si256(v), 0xd8); }
};

/// Sums of four rows' 16-bit pairs: [row] of the first 16 bytes, [row] of the others. Eight pairs come together.
[[gnu::always_inline]] inline __m256i sums_of_rows(const __m256i (&rows)[4]) {
  __m256 two[2];
  for (int i = 0; i < 2; ++i) {
    const __m256i a = rows[2 * i], b = rows[2 * i + 1];
    two[i] = _mm256_castsi256_ps(_mm256_add_epi16(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)));
  }
  const __m256i pairs = _mm256_add_epi16(_mm256_castps_si256(_mm256_shuffle_ps(two[0], two[1], 0x88)),
      _mm256_castps_si256(_mm256_shuffle_ps(two[0], two[1], 0xdd)));
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/// Products of a block of rows of 4-bit codes, summed by position before they are by row: for one or two rows of
/// activations that is less work than to transpose codes.
template <int R>
[[gnu::always_inline]] inline void nibble_products_by_row(
    CodeRows codes, const std::int8_t* x, std::ptrdiff_t stride, Lanes (&products)[R]) {
  const __m256i nibble = _mm256_set1_epi8(15);
  const auto inputs = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<NibbleInputs, R>{NibbleInputs(x + static_cast<std::ptrdiff_t>(I) * stride)...};
  }(std::make_index_sequence<R>{});
  __m256i fours[R][4];
#pragma GCC unroll 4
  for (int four = 0; four < 4; ++four) {
    // Four rows at a time: a compiler that mixes them asks for all at once, and spills.
    asm volatile("" : : : "memory");
    codes.ask_for(2 * four);
    codes.ask_for(2 * four + 1);
    const std::uint8_t* at = codes.at + 4 * four * codes.stride;
    __m256i sums[R][4];
    for (int j = 0; j < 4; ++j) {
      __m256i row = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + j * codes.stride));
      asm("" : "+x"(row));  // loaded once, not once for each half
      const __m256i low = _mm256_and_si256(row, nibble), high = _mm256_and_si256(_mm256_srli_epi16(row, 4), nibble);
      for (int r = 0; r < R; ++r) {
        sums[r][j] =
            _mm256_add_epi16(_mm256_maddubs_epi16(low, inputs[r].even), _mm256_maddubs_epi16(high, inputs[r].odd));
      }
    }
    for (int r = 0; r < R; ++r) fours[r][four] = sums_of_rows(sums[r]);
  }
  for (int r = 0; r < R; ++r) {
    const auto eight = [&](const __m256i& a, const __m256i& b) {
      return _mm256_cvtepi32_ps(
          _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31)));
    };
    products[r] = {eight(fours[r][0], fours[r][1]), eight(fours[r][2], fours[r][3])};
  }
}
#endif

template <int R, int Words, typename Codes>
[[gnu::always_inline]] inline void nibble_products(
    Codes codes, const std::int8_t* x, std::ptrdiff_t stride, Lanes (&products)[R]) {
#ifndef FORESAY_VNNI
  if constexpr (R <= 2 && std::is_same_v<Codes, CodeRows>) {
    static_assert(Words == 8);
    return nibble_products_by_row<R>(codes, x, stride, products);
  }
#endif
  sixteen_rows<NibbleWords, R, Words>(codes, x, stride, products);
}

template <int R, int Words, typename Codes>
[[gnu::always_inline]] inline void byte_products(
    Codes codes, const std::int8_t* x, std::ptrdiff_t stride, Lanes (&products)[R]) {
  sixteen_rows<ByteWords, R, Words>(codes, x, stride, products);
}

}  // namespace foresay::kernels::FORESAY_LANES
