// kernels/int8_tile_neon.h: the innermost loops of linear_int8() with the int8 dot product, and with the int8 matrix
// product where FORESAY_I8MM is defined.
#pragma once

namespace foresay::kernels::FORESAY_LANES {

/// Lanes 0-3 or 4-7 of a block, as a register.
inline void add_scaled(float32x4_t& acc, int32x4_t products, float scale) {
  acc = vfmaq_f32(acc, vcvtq_f32_s32(products), vdupq_n_f32(scale));
}

#ifdef FORESAY_I8MM
/// Two registers of bytes, a and b, so that eight bytes make four of a and the four of b at the same place.
inline int8x16x2_t by_fours(int8x16_t a, int8x16_t b) {
  const int32x4_t x = vreinterpretq_s32_s8(a), y = vreinterpretq_s32_s8(b);
  return {{vreinterpretq_s8_s32(vzip1q_s32(x, y)), vreinterpretq_s8_s32(vzip2q_s32(x, y))}};
}
/// The first or second eight bytes of two registers.
inline int8x16_t both_low(int8x16_t a, int8x16_t b) {
  return vcombine_s8(vget_low_s8(a), vget_low_s8(b));
}
inline int8x16_t both_high(int8x16_t a, int8x16_t b) {
  return vcombine_s8(vget_high_s8(a), vget_high_s8(b));
}

/// Two weight rows against two rows of activations: each instruction gives one lane of all four sums.
inline void nibble_square(
    const Int8Tile& x, const std::uint8_t* const* codes, const float* const* scales, float (&lanes)[2][2][16]) {
  float32x4_t acc[16];
  for (auto& each : acc) each = vdupq_n_f32(0);
  for (int b = 0; b < x.in / kInt8Block; ++b) {
    for (int half = 0; half < 2; ++half) {
      int8x16x2_t w[2], v[2];
      for (int j = 0; j < 2; ++j) {
        const uint8x16_t packed = vld1q_u8(codes[j] + 32 * b + 16 * half);
        w[j] =
            by_fours(vreinterpretq_s8_u8(vandq_u8(packed, vdupq_n_u8(15))), vreinterpretq_s8_u8(vshrq_n_u8(packed, 4)));
        const std::int8_t* even = x.codes + j * x.code_stride + b / 2 * 128 + b % 2 * 32 + 16 * half;
        v[j] = by_fours(vld1q_s8(even), vld1q_s8(even + 64));
      }
      // Row-major 2 x 2: weight 0 with row 0, with row 1, weight 1 with row 0, with row 1.
      const float s[2] = {scales[0][2 * b + half], scales[1][2 * b + half]};
      const float t[2] = {x.scales[b], x.scales[x.scale_stride + b]};
      const float products[4] = {s[0] * t[0], s[0] * t[1], s[1] * t[0], s[1] * t[1]};
      const float32x4_t scale = vld1q_f32(products);
      for (int part = 0; part < 2; ++part) {
        const int8x16_t low = both_low(w[0].val[part], w[1].val[part]),
                        high = both_high(w[0].val[part], w[1].val[part]);
        const int8x16_t to_low = both_low(v[0].val[part], v[1].val[part]);
        const int8x16_t to_high = both_high(v[0].val[part], v[1].val[part]);
        const int lane = b % 2 * 8 + half * 4 + part * 2;
        acc[lane] = vfmaq_f32(acc[lane], vcvtq_f32_s32(vmmlaq_s32(vdupq_n_s32(0), low, to_low)), scale);
        acc[lane + 1] = vfmaq_f32(acc[lane + 1], vcvtq_f32_s32(vmmlaq_s32(vdupq_n_s32(0), high, to_high)), scale);
      }
    }
  }
  for (int lane = 0; lane < 16; ++lane) {
    float four[4];
    vst1q_f32(four, acc[lane]);
    for (int i = 0; i < 4; ++i) lanes[i / 2][i % 2][lane] = four[i];
  }
}
#endif

template <int W, int R>
inline void nibble_dots(const Int8Tile& x, const WeightTile<W>& w, Lanes (&acc)[W][R]) {
  for (int j = 0; j < W; ++j) {
    for (int r = 0; r < R; ++r) acc[j][r] = splat(0);
    for (int b = 0; b < x.in / kInt8Block; ++b) {
      int8x16_t low[2], high[2];
      for (int half = 0; half < 2; ++half) {
        const uint8x16_t packed = vld1q_u8(w.codes[j] + 32 * b + 16 * half);
        low[half] = vreinterpretq_s8_u8(vandq_u8(packed, vdupq_n_u8(15)));
        high[half] = vreinterpretq_s8_u8(vshrq_n_u8(packed, 4));
      }
      for (int r = 0; r < R; ++r) {
        const std::int8_t* even = x.codes + r * x.code_stride + b / 2 * 128 + b % 2 * 32;
        for (int half = 0; half < 2; ++half) {
          int32x4_t products = vdotq_s32(vdupq_n_s32(0), low[half], vld1q_s8(even + 16 * half));
          products = vdotq_s32(products, high[half], vld1q_s8(even + 64 + 16 * half));
          add_scaled(
              acc[j][r].v[b % 2 * 2 + half], products, w.scales[j][2 * b + half] * x.scales[r * x.scale_stride + b]);
        }
      }
    }
  }
}

template <int W, int R>
inline void nibble_tile(const Int8Tile& x, const WeightTile<W>& w, Lanes (&acc)[W][R]) {
#ifdef FORESAY_I8MM
  if constexpr (W % 2 == 0 && R % 2 == 0) {
    for (int j = 0; j < W; j += 2) {
      for (int r = 0; r < R; r += 2) {
        float lanes[2][2][16];
        Int8Tile rows = x;
        rows.codes += r * x.code_stride;
        rows.scales += r * x.scale_stride;
        nibble_square(rows, w.codes + j, w.scales + j, lanes);
        for (int i = 0; i < 4; ++i) acc[j + i / 2][r + i % 2] = load(lanes[i / 2][i % 2]);
      }
    }
    return;
  }
#endif
  nibble_dots<W, R>(x, w, acc);
}

/// Codes less 128 are signed bytes, and the dot product takes those as they are; nothing can saturate.
template <int W, int R>
inline void byte_tile(const Int8Tile& x, const WeightTile<W>& w, Lanes (&acc)[W][R]) {
  for (int j = 0; j < W; ++j) {
    for (int r = 0; r < R; ++r) acc[j][r] = splat(0);
    for (int b = 0; b < x.in / kInt8Block; ++b) {
      int8x16_t codes[4];
      for (int i = 0; i < 4; ++i) {
        const uint8x16_t bytes = vld1q_u8(w.codes[j] + kInt8Block * b + 16 * i);
        codes[i] = vreinterpretq_s8_u8(veorq_u8(bytes, vdupq_n_u8(128)));
      }
      for (int r = 0; r < R; ++r) {
        const std::int8_t* values = x.codes + r * x.code_stride + kInt8Block * b;
        for (int i = 0; i < 4; ++i) {
          const int32x4_t products = vdotq_s32(vdupq_n_s32(0), codes[i], vld1q_s8(values + 16 * i));
          add_scaled(acc[j][r].v[i], products, w.scales[j][2 * b + i / 2] * x.scales[r * x.scale_stride + b]);
        }
      }
    }
  }
}

}  // namespace foresay::kernels::FORESAY_LANES
