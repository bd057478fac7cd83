// kernels/row_ops.h: operations on one row: norms, rotation, activations.
#pragma once

namespace foresay {

/// y = x / sqrt(mean(x^2) + eps) * gain, float32, sums in index order. x and y may be the same.
void rms_norm_row(const float* x, const float* gain, float eps, int n, float* y);

/// y = x / sqrt(sum(x^2) + eps) * scale. The epsilon is on the sum, not the mean (docs/families/qwen3_5.md). x and y
/// may be the same.
void l2_norm_row(const float* x, float eps, float scale, int n, float* y);

/// Rotates the pairs (j, j + pairs) of the first 2 * pairs elements in place; the rest is left.
///   cosines, sines  [pairs]
void rope_row(float* x, const float* cosines, const float* sines, int pairs);

[[nodiscard]] float silu(float x);
[[nodiscard]] float sigmoid(float x);
[[nodiscard]] float softplus(float x);  ///< x itself above 20

}  // namespace foresay
