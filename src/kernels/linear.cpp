#include "kernels/linear.h"

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstring>

#include "base/cpu_features.h"
#include "kernels/linear_variants.h"

namespace foresay {
namespace {

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

float from_f16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t rest = half & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);           // inf, nan
  if (rest >= 0x0400u) return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000u));                  // normal
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(rest) * 0x1p-24f));  // subnormal
}

float element(const void* data, WeightType type, std::size_t i) {
  switch (type) {
    case WeightType::f32:
      return static_cast<const float*>(data)[i];
    case WeightType::f16:
      return from_f16(static_cast<const std::uint16_t*>(data)[i]);
    case WeightType::bf16:
      return from_bf16(static_cast<const std::uint16_t*>(data)[i]);
    case WeightType::affine:
      break;
  }
  assert(false);
  return 0;
}

/// One group of codes -> values. MLX packing: the row is a bit stream, low bits first, `bits` per element.
void unpack_group(const std::uint8_t* bytes, int bits, int count, float scale, float bias, float* out) {
  if (bits == 4) {
    for (int i = 0; i < count / 2; ++i) {
      out[2 * i] = scale * static_cast<float>(bytes[i] & 15) + bias;
      out[2 * i + 1] = scale * static_cast<float>(bytes[i] >> 4) + bias;
    }
  } else if (bits == 8) {
    for (int i = 0; i < count; ++i) out[i] = scale * static_cast<float>(bytes[i]) + bias;
  } else {
    std::uint32_t buffer = 0;
    int held = 0;
    for (int i = 0; i < count; ++i) {
      while (held < bits) {
        buffer |= static_cast<std::uint32_t>(*bytes++) << held;
        held += 8;
      }
      out[i] = scale * static_cast<float>(buffer & ((1u << bits) - 1)) + bias;
      buffer >>= bits;
      held -= bits;
    }
  }
}

void unpack_affine(const WeightView& w, int n, float* row) {
  const int groups = w.in / w.group;
  const std::size_t row_bytes = static_cast<std::size_t>(w.in) * static_cast<std::size_t>(w.bits) / 8;
  const std::size_t group_bytes = static_cast<std::size_t>(w.group) * static_cast<std::size_t>(w.bits) / 8;
  const auto* bytes = static_cast<const std::uint8_t*>(w.data) + static_cast<std::size_t>(n) * row_bytes;
  for (int g = 0; g < groups; ++g) {
    const std::size_t at = static_cast<std::size_t>(n) * static_cast<std::size_t>(groups) + static_cast<std::size_t>(g);
    unpack_group(bytes + static_cast<std::size_t>(g) * group_bytes, w.bits, w.group,
        element(w.scales, w.scale_type, at), element(w.biases, w.scale_type, at),
        row + static_cast<std::ptrdiff_t>(g) * w.group);
  }
}

kernels::DotRows dot_rows() {
#if defined(__x86_64__)
  if (current_isa() == Isa::avx2) return kernels::dot_rows_avx2;
#endif
  return kernels::dot_rows_reference;
}

}  // namespace

void unpack_row(const WeightView& w, int n, float* row) {
  const std::size_t begin = static_cast<std::size_t>(n) * static_cast<std::size_t>(w.in);
  switch (w.type) {
    case WeightType::f32:
      std::memcpy(row, static_cast<const float*>(w.data) + begin, sizeof(float) * static_cast<std::size_t>(w.in));
      break;
    case WeightType::f16: {
      const auto* half = static_cast<const std::uint16_t*>(w.data) + begin;
      for (int i = 0; i < w.in; ++i) row[i] = from_f16(half[i]);
      break;
    }
    case WeightType::bf16: {
      const auto* half = static_cast<const std::uint16_t*>(w.data) + begin;
      for (int i = 0; i < w.in; ++i) row[i] = from_bf16(half[i]);
      break;
    }
    case WeightType::affine:
      unpack_affine(w, n, row);
      break;
  }
}

void linear(const float* x, int rows, const WeightView& w, float* y, int first, int last, float* scratch) {
  const auto run = dot_rows();
  for (int n = first; n < last; ++n) {
    const float* row = scratch;
    if (w.type == WeightType::f32) {
      row = static_cast<const float*>(w.data) + static_cast<std::size_t>(n) * static_cast<std::size_t>(w.in);
    } else {
      unpack_row(w, n, scratch);
    }
    run(x, rows, row, w.in, y + n, w.out);
  }
}

float dot(const float* a, const float* b, int n) {
  float sum = 0;
  dot_rows()(a, 1, b, n, &sum, 1);
  return sum;
}

}  // namespace foresay
