// kernels/lanes_reference.h: sixteen floats side by side, and everything that kernels do with them: the definition.
// lanes_avx2.h, lanes_avx512.h and lanes_neon.h are the same in registers, bit for bit. Kernels whose bodies are
// written over Lanes (*_body.h) therefore give the same bits on every instruction set.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/elements.h"

namespace foresay::kernels::FORESAY_LANES {

struct Lanes {
  float v[16];
};

inline constexpr int kTileRows = 2;   ///< rows of x that linear() keeps in registers beside four weight rows
inline constexpr int kStateRows = 4;  ///< values of a state that gated_delta() works on together

/// a * b + c, rounded once. The product of two floats is exact in double; the sum is rounded to odd there, so that
/// rounding it again to float gives the nearest (Boldo and Melquiond 2008). The C library's fmaf takes 50 ns on
/// processors without the instruction, which are the ones that run this file.
inline float fused(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return std::fma(a, b, c);
#else
  const double product = static_cast<double>(a) * b, sum = product + c;
  const double back = sum - product, error = (product - (sum - back)) + (c - back);
  if (error > 0 || error < 0) {  // NaN: nothing was rounded
    auto bits = std::bit_cast<std::uint64_t>(sum);
    if ((bits & 1) == 0) bits += (error > 0) == (sum > 0) ? 1 : -1;
    return static_cast<float>(std::bit_cast<double>(bits));
  }
  return static_cast<float>(sum);
#endif
}

template <typename F>
inline Lanes lane_by_lane(F f) {
  Lanes y;
  for (int i = 0; i < 16; ++i) y.v[i] = f(i);
  return y;
}

inline Lanes splat(float x) {
  return lane_by_lane([x](int) { return x; });
}
inline Lanes load(const float* p) {
  Lanes y;
  std::memcpy(y.v, p, sizeof y.v);
  return y;
}
/// The first n floats, 0 in the other lanes; nothing else is read.
inline Lanes load_part(const float* p, int n) {
  Lanes y = {};
  std::memcpy(y.v, p, static_cast<std::size_t>(n) * sizeof(float));
  return y;
}
inline void store(float* p, Lanes x) {
  std::memcpy(p, x.v, sizeof x.v);
}
inline void store_part(float* p, Lanes x, int n) {
  std::memcpy(p, x.v, static_cast<std::size_t>(n) * sizeof(float));
}
/// Sixteen bf16 values at any address.
inline Lanes load_bf16(const void* p) {
  std::uint16_t half[16];
  std::memcpy(half, p, sizeof half);
  return lane_by_lane([&](int i) { return std::bit_cast<float>(static_cast<std::uint32_t>(half[i]) << 16); });
}

/// Sixteen f16 values at any address.
inline Lanes load_f16(const void* p) {
  return lane_by_lane([&](int i) { return from_f16(load_at<std::uint16_t>(p, static_cast<std::size_t>(i))); });
}
/// Sixteen E2M1 codes, a byte each: twice their values, as int8.
inline void twice_e2m1(const std::uint8_t* codes, std::int8_t* values) {
  for (int i = 0; i < 16; ++i) values[i] = kTwiceE2m1[codes[i]];
}
/// Sixteen E4M3 codes.
inline Lanes load_e4m3(const std::uint8_t* p) {
  return lane_by_lane([&](int i) { return from_e4m3(p[i]); });
}
inline Lanes load_int8(const std::int8_t* p) {
  return lane_by_lane([&](int i) { return static_cast<float>(p[i]); });
}
/// Sixteen bytes, 0 to 255.
inline Lanes load_u8(const std::uint8_t* p) {
  return lane_by_lane([&](int i) { return static_cast<float>(p[i]); });
}

inline Lanes operator+(Lanes a, Lanes b) {
  return lane_by_lane([&](int i) { return a.v[i] + b.v[i]; });
}
inline Lanes operator-(Lanes a, Lanes b) {
  return lane_by_lane([&](int i) { return a.v[i] - b.v[i]; });
}
inline Lanes operator*(Lanes a, Lanes b) {
  return lane_by_lane([&](int i) { return a.v[i] * b.v[i]; });
}
inline Lanes operator/(Lanes a, Lanes b) {
  return lane_by_lane([&](int i) { return a.v[i] / b.v[i]; });
}
/// a * b + c, rounded once.
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return lane_by_lane([&](int i) { return fused(a.v[i], b.v[i], c.v[i]); });
}
/// b where either is NaN, as x86 has it.
inline Lanes min(Lanes a, Lanes b) {
  return lane_by_lane([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline Lanes max(Lanes a, Lanes b) {
  return lane_by_lane([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline Lanes abs(Lanes a) {
  return lane_by_lane([&](int i) { return std::fabs(a.v[i]); });
}
/// To the nearest whole number, ties to even.
inline Lanes rounded(Lanes a) {
  return lane_by_lane([&](int i) { return std::nearbyintf(a.v[i]); });
}
/// 2^n for whole n from -126 to 127.
inline Lanes power_of_two(Lanes n) {
  return lane_by_lane([&](int i) {
    const float x = n.v[i];
    return std::bit_cast<float>(static_cast<std::uint32_t>((x == x ? static_cast<int>(x) : 0) + 127) << 23);
  });
}
/// x in the first n lanes, 0 in the others.
inline Lanes first_lanes(Lanes x, int n) {
  return lane_by_lane([&](int i) { return i < n ? x.v[i] : 0.0f; });
}

/// The sum of all lanes, pairwise: 8 apart, 4 apart, 2 apart, 1 apart.
inline float sum(Lanes x) {
  for (int half = 8; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) x.v[lane] += x.v[lane + half];
  }
  return x.v[0];
}
/// sums of four at once; the same bits as sum().
inline void sum_four(Lanes a, Lanes b, Lanes c, Lanes d, float* out) {
  out[0] = sum(a);
  out[1] = sum(b);
  out[2] = sum(c);
  out[3] = sum(d);
}
inline float largest(Lanes x) {
  float most = x.v[0];
  for (int i = 1; i < 16; ++i) most = x.v[i] > most ? x.v[i] : most;
  return most;
}

/// Whole numbers from -127 to 127 as int8.
inline void store_int8(std::int8_t* p, Lanes x) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(static_cast<int>(x.v[i]));
}
/// Rounded to bf16, ties to even; NaN stays NaN.
inline void store_bf16(std::uint16_t* p, Lanes x) {
  for (int i = 0; i < 16; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(x.v[i]);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    p[i] = static_cast<std::uint16_t>((nan ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
  }
}

}  // namespace foresay::kernels::FORESAY_LANES
