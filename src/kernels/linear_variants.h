// kernels/linear_variants.h: the inner loop of linear(), one per instruction set. All give the same bits.
#pragma once

namespace foresay::kernels {

/// y[r * y_stride] = dot(x + r * n, w) for r in [0, rows); sums as documented at linear().
using DotRows = void (*)(const float* x, int rows, const float* w, int n, float* y, int y_stride);

void dot_rows_reference(const float* x, int rows, const float* w, int n, float* y, int y_stride);
void dot_rows_avx2(const float* x, int rows, const float* w, int n, float* y, int y_stride);

}  // namespace foresay::kernels
