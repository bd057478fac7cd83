// kernels/gated_delta.h: the recurrence of GatedDeltaNet for one head, and its causal convolution.
#pragma once

namespace foresay {

/// One token through the recurrence, state [Dv, Dk] updated in place (docs/families/qwen3_5.md):
/// decay, read, write, output: S *= g; d = beta * (v - S k); S += d k^T; y = S q.
///   q, k   [Dk]  normalised;  v [Dv]
///   delta  [Dv]  receives d
///   y      [Dv]
void gated_delta_step(float* state, int value_dim, int key_dim, float decay, float beta, const float* q, const float* k,
    const float* v, float* delta, float* y);

/// The write half alone, from a recorded d: S *= g; S += d k^T. Leaves the bits that gated_delta_step left.
void gated_delta_advance(float* state, int value_dim, int key_dim, float decay, const float* delta, const float* k);

/// Causal depthwise convolution and SiLU for channels [first, last).
///   window  [K-1, C]   rows before the first, oldest first
///   u       [rows, C]  input rows
///   taps    [C, K]     last tap multiplies the current row
///   y       [rows, C]
void causal_conv_silu(const float* window, const float* u, int rows, int channels, int kernel, const float* taps,
    float* y, int first, int last);

/// window [K-1, C] becomes the last K-1 rows of (window, rows).
void slide_window(float* window, const float* rows, int count, int channels, int kernel);

}  // namespace foresay
