// The definition of correct: plain loops.
#include "kernels/unpack_row_variants.h"

namespace foresay::kernels {
namespace {

/// MLX packing (docs/checkpoints.md): the row is a bit stream, low bits first, `bits` per element. The general loop
/// covers every width; the two before it are the same rule where codes do not straddle bytes, for machines that run
/// this file.
void unpack_group(const std::uint8_t* codes, int bits, int count, float scale, float bias, float* values) {
  if (bits == 4) {
    for (int i = 0; i < count / 2; ++i) {
      values[2 * i] = scale * static_cast<float>(codes[i] & 15) + bias;
      values[2 * i + 1] = scale * static_cast<float>(codes[i] >> 4) + bias;
    }
  } else if (bits == 8) {
    for (int i = 0; i < count; ++i) values[i] = scale * static_cast<float>(codes[i]) + bias;
  } else {
    std::uint32_t buffer = 0;
    int held = 0;
    for (int i = 0; i < count; ++i) {
      if (held < bits) {  // bits <= 8: one more byte is always enough
        buffer |= static_cast<std::uint32_t>(*codes++) << held;
        held += 8;
      }
      values[i] = scale * static_cast<float>(buffer & ((1u << bits) - 1)) + bias;
      buffer >>= bits;
      held -= bits;
    }
  }
}

}  // namespace

void unpack_row_reference(const WeightView& w, int n, float* row) {
  const auto in = static_cast<std::size_t>(w.in);
  const std::size_t first = static_cast<std::size_t>(n) * in;
  switch (w.type) {
    case WeightType::f32:
      std::memcpy(row, static_cast<const std::byte*>(w.data) + first * sizeof(float), in * sizeof(float));
      break;
    case WeightType::f16:
      for (std::size_t i = 0; i < in; ++i) row[i] = from_f16(load<std::uint16_t>(w.data, first + i));
      break;
    case WeightType::bf16:
      for (std::size_t i = 0; i < in; ++i) row[i] = from_bf16(load<std::uint16_t>(w.data, first + i));
      break;
    case WeightType::affine:
      for_each_group(w, n, row, [&w](const std::uint8_t* codes, float scale, float bias, float* values) {
        unpack_group(codes, w.bits, w.group, scale, bias, values);
      });
      break;
  }
}

}  // namespace foresay::kernels
