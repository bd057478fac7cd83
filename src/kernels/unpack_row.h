// kernels/unpack_row.h: weight matrices as files store them, and one row of them as float32.
#pragma once

#include <cstdint>

namespace foresay {

/// How a weight matrix is stored.
enum class WeightType { f32, f16, bf16, affine };

/// A weight matrix [out, in], row-major, as it lies in the mapped file. Pointers may have any address: files do not
/// always align their tensors.
struct WeightView {
  WeightType type = WeightType::f32;
  int out = 0, in = 0;
  const void* data = nullptr;  ///< f32, f16, bf16: [out, in]; affine: uint32 words [out, in * bits / 32]
  // affine only: value = scale * q + bias, per group of consecutive inputs
  int bits = 0, group = 0;                   ///< 2, 3, 4, 5, 6 or 8; 32, 64 or 128, a divisor of `in`
  WeightType scale_type = WeightType::bf16;  ///< f32, f16 or bf16
  const void* scales = nullptr;              ///< [out, in / group]
  const void* biases = nullptr;              ///< [out, in / group]
};

/// The matrix from row `first` on, with `out` rows; `out` is also how far apart rows of a product lie.
[[nodiscard]] WeightView rows_of(const WeightView& w, int first, int out);

/// Writes row `n` of the matrix as float32 [in]. Affine values are scale * q + bias in float32, two roundings. Every
/// instruction set gives the same bits.
void unpack_row(const WeightView& w, int n, float* row);

/// Writes the codes of row `n` of an affine matrix, one byte each [in].
void unpack_codes(const WeightView& w, int n, std::uint8_t* codes);

}  // namespace foresay
