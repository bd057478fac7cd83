// kernels/linear.h: rows of activations times a weight matrix, raw or packed, in a fixed order of sums.
#pragma once

#include <cstdint>

namespace foresay {

/// Element type of an unpacked weight matrix.
enum class WeightType { f32, f16, bf16, affine };

/// A weight matrix [out, in], row-major, as it lies in the mapped file. Pointers are aligned to their element.
struct WeightView {
  WeightType type = WeightType::f32;
  int out = 0, in = 0;
  const void* data = nullptr;  ///< f32, f16, bf16: [out, in]; affine: uint32 words [out, in * bits / 32]
  // affine only: value = scale * q + bias, per group of consecutive inputs
  int bits = 0, group = 0;
  WeightType scale_type = WeightType::bf16;  ///< f32, f16 or bf16
  const void* scales = nullptr;              ///< [out, in / group]
  const void* biases = nullptr;              ///< [out, in / group]
};

/// Writes row `n` of the matrix as float32 [in]. Affine values are scale * q + bias in float32, two roundings.
void unpack_row(const WeightView& w, int n, float* row);

/// y[r, n] = sum over i of x[r, i] * w[n, i] for n in [first, last).
///   x        [rows, in]   stride `in`
///   y        [rows, out]  stride `out`
///   scratch  [in]         floats for the unpacked row
/// Each sum runs in 16 interleaved partial sums that are then added pairwise, without FMA: the bits are the same for
/// any number of rows, any range of n and every instruction set.
void linear(const float* x, int rows, const WeightView& w, float* y, int first, int last, float* scratch);

/// Dot product in the order that linear() uses.
[[nodiscard]] float dot(const float* a, const float* b, int n);

}  // namespace foresay
