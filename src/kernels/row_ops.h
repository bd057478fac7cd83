// kernels/row_ops.h: operations on one row: norms, rotation, activations.
#pragma once

namespace foresay {

/// y = x / sqrt(mean(x^2) + eps) * gain. x and y may be the same. The sum has the order of linear().
void rms_norm_row(const float* x, const float* gain, float eps, int n, float* y);

/// y = rms_norm(x) * silu(z), the output norm of GatedDeltaNet. x and y may be the same.
void gated_rms_norm_row(const float* x, const float* gain, float eps, const float* z, int n, float* y);

/// y = x / sqrt(sum(x^2) + eps) * scale. The epsilon is on the sum, not the mean (docs/families/qwen3_5.md). x and y
/// may be the same.
void l2_norm_row(const float* x, float eps, float scale, int n, float* y);

/// Rotates the pairs (j, j + pairs) of the first 2 * pairs elements in place; the rest is left.
///   cosines, sines  [pairs]
void rope_row(float* x, const float* cosines, const float* sines, int pairs);

/// y = silu(gate) * up; with a limit L above 0: min(silu(gate), L) * clip(up, -L, L). y may be either.
void swiglu_row(const float* gate, const float* up, float limit, int n, float* y);

/// y = y * sigmoid(gate).
void sigmoid_gate_row(const float* gate, int n, float* y);

/// y = x + z. y may be either.
void add_row(const float* x, const float* z, int n, float* y);

/// y = e^x within 2e-7 of it for x in [-87.3, 88.3]; 0 and infinity beyond. NaN stays NaN.
void exp_row(const float* x, int n, float* y);

// One value at a time, by the C library: gates of heads, a handful per row.
[[nodiscard]] float sigmoid(float x);
[[nodiscard]] float softplus(float x);  ///< x itself above 20

}  // namespace foresay
