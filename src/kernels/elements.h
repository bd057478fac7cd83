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
    case WeightType::affine:
      break;
  }
  assert(false);
  return 0;
}

[[nodiscard]] constexpr std::size_t bytes_of(WeightType type) {
  return type == WeightType::f32 ? 4 : 2;
}

/// Where the codes of row `n` of an affine matrix begin.
[[nodiscard]] inline const std::uint8_t* codes_of(const WeightView& w, int n) {
  const std::size_t row = static_cast<std::size_t>(w.in) * static_cast<std::size_t>(w.bits) / 8;
  return static_cast<const std::uint8_t*>(w.data) + static_cast<std::size_t>(n) * row;
}

}  // namespace foresay::kernels
