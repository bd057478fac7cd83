// kernels/lanes_neon.h: lanes_reference.h in four registers.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "kernels/elements.h"

namespace foresay::kernels::FORESAY_LANES {

struct Lanes {
  float32x4_t v[4];
};

inline constexpr int kTileRows = 1;   ///< rows of x that linear() keeps in registers beside four weight rows
inline constexpr int kStateRows = 4;  ///< values of a state that gated_delta() works on together

template <typename F>
inline Lanes each_register(F f) {
  return {{f(0), f(1), f(2), f(3)}};
}

inline Lanes splat(float x) {
  return each_register([x](int) { return vdupq_n_f32(x); });
}
inline Lanes load(const float* p) {
  return each_register([p](int i) { return vld1q_f32(p + 4 * i); });
}
inline Lanes load_part(const float* p, int n) {
  float all[16] = {};
  std::memcpy(all, p, static_cast<std::size_t>(n) * sizeof(float));
  return load(all);
}
inline void store(float* p, Lanes x) {
  for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, x.v[i]);
}
inline void store_part(float* p, Lanes x, int n) {
  float all[16];
  store(all, x);
  std::memcpy(p, all, static_cast<std::size_t>(n) * sizeof(float));
}
inline Lanes load_bf16(const void* p) {
  std::uint16_t half[16];
  std::memcpy(half, p, sizeof half);
  return each_register([&](int i) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(half + 4 * i), 16)); });
}
inline Lanes load_f16(const void* p) {
  float16_t half[16];
  std::memcpy(half, p, sizeof half);
  return each_register([&](int i) { return vcvt_f32_f16(vld1_f16(half + 4 * i)); });
}
inline void twice_e2m1(const std::uint8_t* codes, std::int8_t* values) {
  vst1q_s8(values, vqtbl1q_s8(vld1q_s8(kTwiceE2m1), vld1q_u8(codes)));
}
inline Lanes load_e4m3(const std::uint8_t* p) {
  return each_register([p](int i) {
    float four[4];
    for (int j = 0; j < 4; ++j) four[j] = from_e4m3(p[4 * i + j]);
    return vld1q_f32(four);
  });
}
inline Lanes load_int8(const std::int8_t* p) {
  const int8x16_t bytes = vld1q_s8(p);
  const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_s8(vget_high_s8(bytes));
  return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
      vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(high)))}};
}
inline Lanes load_u8(const std::uint8_t* p) {
  const uint8x16_t bytes = vld1q_u8(p);
  const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_u8(vget_high_u8(bytes));
  return {{vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))), vcvtq_f32_u32(vmovl_u16(vget_high_u16(low))),
      vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))), vcvtq_f32_u32(vmovl_u16(vget_high_u16(high)))}};
}

inline Lanes operator+(Lanes a, Lanes b) {
  return each_register([&](int i) { return vaddq_f32(a.v[i], b.v[i]); });
}
inline Lanes operator-(Lanes a, Lanes b) {
  return each_register([&](int i) { return vsubq_f32(a.v[i], b.v[i]); });
}
inline Lanes operator*(Lanes a, Lanes b) {
  return each_register([&](int i) { return vmulq_f32(a.v[i], b.v[i]); });
}
inline Lanes operator/(Lanes a, Lanes b) {
  return each_register([&](int i) { return vdivq_f32(a.v[i], b.v[i]); });
}
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return each_register([&](int i) { return vfmaq_f32(c.v[i], a.v[i], b.v[i]); });
}
/// b where either is NaN; Arm's own minimum gives NaN.
inline Lanes min(Lanes a, Lanes b) {
  return each_register([&](int i) { return vbslq_f32(vcltq_f32(a.v[i], b.v[i]), a.v[i], b.v[i]); });
}
inline Lanes max(Lanes a, Lanes b) {
  return each_register([&](int i) { return vbslq_f32(vcgtq_f32(a.v[i], b.v[i]), a.v[i], b.v[i]); });
}
inline Lanes abs(Lanes a) {
  return each_register([&](int i) { return vabsq_f32(a.v[i]); });
}
inline Lanes rounded(Lanes a) {
  return each_register([&](int i) { return vrndnq_f32(a.v[i]); });
}
inline Lanes power_of_two(Lanes n) {
  return each_register([&](int i) {
    const int32x4_t exponent = vaddq_s32(vcvtq_s32_f32(n.v[i]), vdupq_n_s32(127));
    return vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23));
  });
}
inline Lanes first_lanes(Lanes x, int n) {
  float all[16];
  store(all, x);
  return load_part(all, n);
}

inline float32x4_t fold(Lanes x) {
  return vaddq_f32(vaddq_f32(x.v[0], x.v[2]), vaddq_f32(x.v[1], x.v[3]));
}
inline float sum(Lanes x) {
  const float32x4_t four = fold(x);
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline void sum_four(Lanes a, Lanes b, Lanes c, Lanes d, float* out) {
  const Lanes* each[] = {&a, &b, &c, &d};
  for (int i = 0; i < 4; ++i) out[i] = sum(*each[i]);
}
inline float largest(Lanes x) {
  const float32x4_t low = vmaxnmq_f32(x.v[0], x.v[1]), high = vmaxnmq_f32(x.v[2], x.v[3]);
  return vmaxnmvq_f32(vmaxnmq_f32(low, high));
}

inline int8x16_t as_int8(Lanes x) {
  const int16x8_t low = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(x.v[0])), vmovn_s32(vcvtnq_s32_f32(x.v[1])));
  const int16x8_t high = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(x.v[2])), vmovn_s32(vcvtnq_s32_f32(x.v[3])));
  return vcombine_s8(vmovn_s16(low), vmovn_s16(high));
}
inline void store_int8(std::int8_t* p, Lanes x) {
  vst1q_s8(p, as_int8(x));
}
inline void store_bf16(std::uint16_t* p, Lanes x) {
  for (int i = 0; i < 4; ++i) {
    const uint32x4_t bits = vreinterpretq_u32_f32(x.v[i]);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t near = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    const uint32x4_t all = vbslq_u32(vceqq_f32(x.v[i], x.v[i]), near, quiet);
    vst1_u16(p + 4 * i, vshrn_n_u32(all, 16));
  }
}

}  // namespace foresay::kernels::FORESAY_LANES
