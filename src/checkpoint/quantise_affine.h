// checkpoint/quantise_affine.h: the affine quantiser that MLX uses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace foresay {

/// A matrix [out, in] in affine packing: value = scale * code + bias.
struct AffineCodes {
  std::vector<std::uint32_t> words;   ///< [out, in * bits / 32]
  std::vector<float> scales, biases;  ///< [out, in / group], not rounded
};

/// Quantises rows in groups along the input. bits: 2, 3, 4, 5, 6, 8; group: 32, 64, 128, a divisor of `in`. Rounded to
/// the matrix's type, scales and biases are the bits of mx.quantize (0.32, CPU). Golden: golden/quantisation/matrices.
/// Throws ErrorCode::internal for sizes that do not fit.
[[nodiscard]] AffineCodes quantise_affine(
    std::span<const float> values, std::int64_t out, std::int64_t in, int bits, int group);

}  // namespace foresay
