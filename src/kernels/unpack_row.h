// kernels/unpack_row.h: weight matrices as files store them, and one row of them as float32.
#pragma once

#include <cstdint>

namespace foresay {

/// How a weight matrix is stored.
enum class WeightType { f32, f16, bf16, affine, mxfp4, mxfp8, nvfp4 };

/// Whether the matrix is packed codes with scales.
[[nodiscard]] constexpr bool is_packed(WeightType type) {
  return type >= WeightType::affine;
}

/// A weight matrix [out, in], row-major, as it lies in the mapped file. Pointers may have any address: files do not
/// always align their tensors.
struct WeightView {
  WeightType type = WeightType::f32;
  int out = 0, in = 0;
  const void* data = nullptr;  ///< f32, f16, bf16: [out, in]; packed: uint32 words [out, in * bits / 32]
  // Packed only, per group of consecutive inputs. affine: value = scale * q + bias. mxfp4, nvfp4: scale * e2m1(q);
  // mxfp8: scale * e4m3(q).
  int bits = 0, group = 0;                   ///< affine: 2, 3, 4, 5, 6 or 8 and 32, 64 or 128; 4, 8, 4 and 32, 32, 16
  WeightType scale_type = WeightType::bf16;  ///< affine: f32, f16 or bf16
  const void* scales = nullptr;              ///< [out, in / group]; mxfp4, mxfp8: E8M0 bytes; nvfp4: E4M3 bytes
  const void* biases = nullptr;              ///< [out, in / group], affine only
  bool decides = false;                      ///< products are compared with each other: activations stay float32
};

/// The matrix from row `first` on, with `out` rows; `out` is also how far apart rows of a product lie.
[[nodiscard]] WeightView rows_of(const WeightView& w, int first, int out);

/// Writes row `n` of the matrix as float32 [in]. Affine values are scale * q + bias in float32, two roundings. Every
/// instruction set gives the same bits.
void unpack_row(const WeightView& w, int n, float* row);

inline constexpr int kMxfp4Zero = 12;  ///< the byte that stands for an mxfp4 value of 0; twice the largest value, 6

/// Writes the codes of row `n` of an affine matrix, one byte each [in]; of an mxfp4 matrix twice the values plus
/// kMxfp4Zero.
void unpack_codes(const WeightView& w, int n, std::uint8_t* codes);

}  // namespace foresay
