// kernels/linear.h: rows of activations times a weight matrix, raw or packed, in a fixed order of sums.
#pragma once

#include "kernels/unpack_row.h"

namespace foresay {

/// y[r, n] = sum over i of x[r, i] * w[n, i] for n in [first, last).
///   x        [rows, in]   stride `in`
///   y        [rows, out]  stride `out`
///   scratch  [in]         floats for the unpacked row
/// Each sum runs in 16 interleaved partial sums that are then added pairwise, without FMA: the bits are the same for
/// any number of rows, any range of n and every instruction set.
void linear(const float* x, int rows, const WeightView& w, float* y, int first, int last, float* scratch);

/// y[r] = sum over i of rows[r, i] * v[i], in the order that linear() uses. rows [count, n], stride `n`.
void dot_rows(const float* rows, int count, const float* v, int n, float* y);

}  // namespace foresay
