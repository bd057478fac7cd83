// kernels/int8_tile_neon.h: the innermost loops of linear_int8() with the int8 dot product, and with the int8 matrix
// product where FORESAY_I8MM is defined.
#pragma once

namespace foresay::kernels::FORESAY_LANES {

inline constexpr int kInt8TileRows = 4;  ///< rows of activations that stay in registers

/// Four words of four bytes of four rows, from 16 bytes of each: words[word], rows in order.
[[gnu::always_inline]] inline void transpose_words(
    const std::uint8_t* rows, std::ptrdiff_t stride, uint8x16_t (&words)[4]) {
  uint32x4_t v[4], t[4];
  for (int j = 0; j < 4; ++j) v[j] = vreinterpretq_u32_u8(vld1q_u8(rows + j * stride));
  for (int j = 0; j < 4; j += 2) {
    t[j] = vtrn1q_u32(v[j], v[j + 1]);      // words 0 and 2 of two rows
    t[j + 1] = vtrn2q_u32(v[j], v[j + 1]);  // words 1 and 3
  }
  for (int j = 0; j < 2; ++j) {
    const uint64x2_t first = vreinterpretq_u64_u32(t[j]), second = vreinterpretq_u64_u32(t[j + 2]);
    words[j] = vreinterpretq_u8_u64(vtrn1q_u64(first, second));
    words[j + 2] = vreinterpretq_u8_u64(vtrn2q_u64(first, second));
  }
}

/// Words of four bytes of sixteen rows, from 32 bytes of each: out[word][row].
inline void interleave(const std::uint8_t* rows, std::ptrdiff_t stride, std::uint8_t* out) {
  for (int four = 0; four < 4; ++four) {
    for (int half = 0; half < 2; ++half) {
      uint8x16_t words[4];
      transpose_words(rows + 4 * four * stride + 16 * half, stride, words);
      for (int d = 0; d < 4; ++d) vst1q_u8(out + 64 * (4 * half + d) + 16 * four, words[d]);
    }
  }
}

/// Four words of four rows, from word `first` on; four: 0 to 3.
[[gnu::always_inline]] inline void load_words(CodeWords codes, int four, int first, uint8x16_t (&words)[4]) {
  for (int d = 0; d < 4; ++d) words[d] = vld1q_u8(codes.at + kWord * static_cast<std::size_t>(first + d) + 16 * four);
}
[[gnu::always_inline]] inline void load_words(CodeRows codes, int four, int first, uint8x16_t (&words)[4]) {
  transpose_words(codes.at + 4 * four * codes.stride + 4 * first, codes.stride, words);
}

/// Four words of four rows of 4-bit codes: even elements and odd ones.
struct Nibbles {
  int8x16_t even[4], odd[4];
  explicit Nibbles(const uint8x16_t (&words)[4]) {
    for (int d = 0; d < 4; ++d) {
      even[d] = vreinterpretq_s8_u8(vandq_u8(words[d], vdupq_n_u8(15)));
      odd[d] = vreinterpretq_s8_u8(vshrq_n_u8(words[d], 4));
    }
  }
};

[[gnu::always_inline]] inline int32x4_t add_products(int32x4_t sum, const Nibbles& w, const std::int8_t* x) {
  for (int d = 0; d < 4; d += 2) {
    const int8x16_t v = vld1q_s8(x + 8 * d);
    sum = vdotq_laneq_s32(sum, w.even[d], v, 0);
    sum = vdotq_laneq_s32(sum, w.odd[d], v, 1);
    sum = vdotq_laneq_s32(sum, w.even[d + 1], v, 2);
    sum = vdotq_laneq_s32(sum, w.odd[d + 1], v, 3);
  }
  return sum;
}

/// Codes of one byte; without the mixed product they are taken as two of four bits.
[[gnu::always_inline]] inline int32x4_t add_products(int32x4_t sum, const uint8x16_t (&w)[4], const std::int8_t* x) {
  const int8x16_t v = vld1q_s8(x);
#ifdef FORESAY_I8MM
  sum = vusdotq_laneq_s32(sum, w[0], v, 0);
  sum = vusdotq_laneq_s32(sum, w[1], v, 1);
  sum = vusdotq_laneq_s32(sum, w[2], v, 2);
  return vusdotq_laneq_s32(sum, w[3], v, 3);
#else
  const Nibbles halves(w);
  int32x4_t high = vdotq_laneq_s32(vdupq_n_s32(0), halves.odd[0], v, 0);
  high = vdotq_laneq_s32(high, halves.odd[1], v, 1);
  high = vdotq_laneq_s32(high, halves.odd[2], v, 2);
  high = vdotq_laneq_s32(high, halves.odd[3], v, 3);
  sum = vdotq_laneq_s32(sum, halves.even[0], v, 0);
  sum = vdotq_laneq_s32(sum, halves.even[1], v, 1);
  sum = vdotq_laneq_s32(sum, halves.even[2], v, 2);
  sum = vdotq_laneq_s32(sum, halves.even[3], v, 3);
  return vaddq_s32(sum, vshlq_n_s32(high, 4));
#endif
}

#ifdef FORESAY_I8MM
/// Sums of two pairs of weight rows with two rows of activations, each [weight][activation].
struct Squares {
  int32x4_t first, second;
};

/// Words of two kinds side by side: eight bytes of each of four rows, as two pairs of rows.
template <typename V>
inline void pairs_of_rows(V a, V b, V& first, V& second) {
  const auto x = reinterpret_cast<int32x4_t>(a), y = reinterpret_cast<int32x4_t>(b);
  first = reinterpret_cast<V>(vzip1q_s32(x, y));
  second = reinterpret_cast<V>(vzip2q_s32(x, y));
}

[[gnu::always_inline]] inline void add_products(
    Squares& sums, const Nibbles& w, const std::int8_t* x0, const std::int8_t* x1) {
  for (int d = 0; d < 4; d += 2) {
    const int32x4_t a = vreinterpretq_s32_s8(vld1q_s8(x0 + 8 * d)), b = vreinterpretq_s32_s8(vld1q_s8(x1 + 8 * d));
    const int8x16_t even = vreinterpretq_s8_s32(vuzp1q_s32(a, b)), odd = vreinterpretq_s8_s32(vuzp2q_s32(a, b));
    int8x16_t first, second;
    pairs_of_rows(w.even[d], w.even[d + 1], first, second);
    sums.first = vmmlaq_s32(sums.first, first, even);
    sums.second = vmmlaq_s32(sums.second, second, even);
    pairs_of_rows(w.odd[d], w.odd[d + 1], first, second);
    sums.first = vmmlaq_s32(sums.first, first, odd);
    sums.second = vmmlaq_s32(sums.second, second, odd);
  }
}

[[gnu::always_inline]] inline void add_products(
    Squares& sums, const uint8x16_t (&w)[4], const std::int8_t* x0, const std::int8_t* x1) {
  const int8x16_t a = vld1q_s8(x0), b = vld1q_s8(x1);
  const int8x16_t x[2] = {vcombine_s8(vget_low_s8(a), vget_low_s8(b)), vcombine_s8(vget_high_s8(a), vget_high_s8(b))};
  for (int half = 0; half < 2; ++half) {
    uint8x16_t first, second;
    pairs_of_rows(w[2 * half], w[2 * half + 1], first, second);
    sums.first = vusmmlaq_s32(sums.first, first, x[half]);
    sums.second = vusmmlaq_s32(sums.second, second, x[half]);
  }
}
#endif

/// The products of R rows of activations, four weight rows and four words at a time; Form makes of words what
/// add_products() takes.
template <int R, int Words, int Inputs, typename Codes, typename Form>
[[gnu::always_inline]] inline void all_products(
    Codes codes, const std::int8_t* x, std::ptrdiff_t stride, Form form, Lanes (&products)[R]) {
  for (int four = 0; four < 4; ++four) {
    int32x4_t sums[R];
    for (auto& sum : sums) sum = vdupq_n_s32(0);
#ifdef FORESAY_I8MM
    Squares squares[R / 2 + 1];
    for (auto& each : squares) each = {vdupq_n_s32(0), vdupq_n_s32(0)};
#endif
    for (int first = 0; first < Words; first += 4) {
      uint8x16_t words[4];
      codes.ask_for((four * Words + first) / 4);  // four words of four rows are as many bytes as a line
      load_words(codes, four, first, words);
      const auto& weights = form(words);
      const std::int8_t* p = x + Inputs * first;
      int r = 0;
#ifdef FORESAY_I8MM
      for (; r + 2 <= R; r += 2) add_products(squares[r / 2], weights, p + r * stride, p + (r + 1) * stride);
#endif
      for (; r < R; ++r) sums[r] = add_products(sums[r], weights, p + r * stride);
    }
#ifdef FORESAY_I8MM
    for (int r = 0; r + 2 <= R; r += 2) {
      sums[r] = vuzp1q_s32(squares[r / 2].first, squares[r / 2].second);
      sums[r + 1] = vuzp2q_s32(squares[r / 2].first, squares[r / 2].second);
    }
#endif
    for (int r = 0; r < R; ++r) products[r].v[four] = vcvtq_f32_s32(sums[r]);
  }
}

template <int R, int Words, typename Codes>
[[gnu::always_inline]] inline void nibble_products(
    Codes codes, const std::int8_t* x, std::ptrdiff_t stride, Lanes (&products)[R]) {
  const auto halves = [](const uint8x16_t(&words)[4]) { return Nibbles(words); };
  all_products<R, Words, 8>(codes, x, stride, halves, products);
}

template <int R, int Words, typename Codes>
[[gnu::always_inline]] inline void byte_products(
    Codes codes, const std::int8_t* x, std::ptrdiff_t stride, Lanes (&products)[R]) {
  const auto whole = [](const uint8x16_t(&words)[4]) -> const uint8x16_t(&)[4] { return words; };
  all_products<R, Words, 4>(codes, x, stride, whole, products);
}

}  // namespace foresay::kernels::FORESAY_LANES
