// kernels/unpack_row_variants.h: unpack_row() once per instruction set, and the element readers they share.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/unpack_row.h"

namespace foresay::kernels {

void unpack_row_reference(const WeightView& w, int n, float* row);
void unpack_row_avx2(const WeightView& w, int n, float* row);

/// Element `i` of an array at any address. Compilers turn the copy into a plain load.
template <typename T>
[[nodiscard]] inline T load(const void* data, std::size_t i) {
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
      return load<float>(data, i);
    case WeightType::f16:
      return from_f16(load<std::uint16_t>(data, i));
    case WeightType::bf16:
      return from_bf16(load<std::uint16_t>(data, i));
    case WeightType::affine:
      break;
  }
  assert(false);
  return 0;
}

/// Calls unpack(codes, scale, bias, values) for every group of row `n` of an affine matrix.
template <typename Unpack>
inline void for_each_group(const WeightView& w, int n, float* row, Unpack unpack) {
  const auto groups = static_cast<std::size_t>(w.in / w.group);
  const std::size_t group_bytes = static_cast<std::size_t>(w.group) * static_cast<std::size_t>(w.bits) / 8;
  const std::size_t first = static_cast<std::size_t>(n) * groups;
  const auto* codes = static_cast<const std::uint8_t*>(w.data) + first * group_bytes;
  for (std::size_t g = 0; g < groups; ++g, codes += group_bytes, row += w.group) {
    unpack(codes, element(w.scales, w.scale_type, first + g), element(w.biases, w.scale_type, first + g), row);
  }
}

}  // namespace foresay::kernels
