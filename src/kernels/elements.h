// kernels/elements.h: single elements of matrices, scales and offsets at any address.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/unpack_row.h"

namespace foresay::kernels {

/// Element `i` of an array at any address. Compilers turn the copy into a plain load.
template <typename T>
[[nodiscard]] inline T load_at(const void* data, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + i * sizeof(T), sizeof(T));
  return value;
}

[[nodiscard]] inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

[[nodiscard]] inline float from_f16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t rest = half & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);           // inf, nan
  if (rest >= 0x0400u) return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000u));                  // normal
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(rest) * 0x1p-24f));  // subnormal
}

/// Element `i` of a matrix, of scales or of biases that are no packed words.
[[nodiscard]] inline float element(const void* data, WeightType type, std::size_t i) {
  switch (type) {
    case WeightType::f32:
      return load_at<float>(data, i);
    case WeightType::f16:
      return from_f16(load_at<std::uint16_t>(data, i));
    case WeightType::bf16:
      return from_bf16(load_at<std::uint16_t>(data, i));
    default:
      break;
  }
  assert(false);
  return 0;
}

/// Bytes of one element or scale.
[[nodiscard]] constexpr std::size_t bytes_of(WeightType type) {
  return type == WeightType::f32 ? 4 : 2;
}

/// Values of the eight magnitudes of E2M1, doubled so that they are whole; bit 3 of a code is the sign.
inline constexpr std::int8_t kTwiceE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Sign, four exponent bits (bias 7), three mantissa bits, subnormals: the bits of a float but for the exponent's bias.
[[nodiscard]] inline float from_e4m3(std::uint8_t code) {
  const float magnitude = std::bit_cast<float>(static_cast<std::uint32_t>(code & 0x7f) << 20) * 0x1p120f;
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

/// 2^(byte - 127); 255 is NaN.
[[nodiscard]] inline float from_e8m0(std::uint8_t byte) {
  if (byte == 0) return 0x1p-127f;
  return std::bit_cast<float>(byte == 255 ? 0x7fc00000u : static_cast<std::uint32_t>(byte) << 23);
}

/// Scale of group `at` (counted over all rows) of an mxfp4, mxfp8 or nvfp4 matrix.
[[nodiscard]] inline float fp_scale(const WeightView& w, std::size_t at) {
  const std::uint8_t byte = static_cast<const std::uint8_t*>(w.scales)[at];
  return w.type == WeightType::nvfp4 ? from_e4m3(byte) : from_e8m0(byte);
}

/// Where the codes of row `n` of a packed matrix begin.
[[nodiscard]] inline const std::uint8_t* codes_of(const WeightView& w, int n) {
  const std::size_t row = static_cast<std::size_t>(w.in) * static_cast<std::size_t>(w.bits) / 8;
  return static_cast<const std::uint8_t*>(w.data) + static_cast<std::size_t>(n) * row;
}

}  // namespace foresay::kernels
