// kernels/linear.h: rows of activations times a weight matrix, raw or packed, in a fixed order of sums.
#pragma once

#include "kernels/unpack_row.h"

namespace foresay {

inline constexpr int kLinearTile = 4;  ///< weight rows that linear() unpacks at a time

/// y[r, n] = sum over i of x[r, i] * w[n, i] for n in [first, last).
///   x        [rows, in]   stride `in`
///   y        [rows, out]  stride `out`
///   scratch  [kLinearTile * in]  floats for unpacked rows
/// Each sum runs in 16 interleaved partial sums by fused multiply-add, which are then added pairwise: the bits are the
/// same for any number of rows, any range of n and every instruction set.
void linear(const float* x, int rows, const WeightView& w, float* y, int first, int last, float* scratch);

/// y[r] = sum over i of rows[r, i] * v[i], in the order that linear() uses. rows [count, n], stride `n`.
void dot_rows(const float* rows, int count, const float* v, int n, float* y);

}  // namespace foresay
