// kernels/gated_delta.h: the recurrence of GatedDeltaNet for one head, and its causal convolution.
#pragma once

#include <cstddef>

namespace foresay {

inline constexpr int kMostKeyDim = 512;  ///< what gated_delta() has room for

/// Rows whose effect on a head's state is known already: what gated_delta() wrote as `delta` when it walked them.
/// Row r's values are `*_stride` floats further on.
struct RecordedRows {
  int count = 0;
  const float* key = nullptr;    ///< [Dk] per row
  const float* delta = nullptr;  ///< [Dv] per row
  const float* decay = nullptr;  ///< one per row
  std::ptrdiff_t key_stride = 0, delta_stride = 0, decay_stride = 0;
};

/// Rows for one head, in order.
struct DeltaRows {
  int count = 0;
  const float *query = nullptr, *key = nullptr;   ///< [Dk] per row, normalised
  const float* value = nullptr;                   ///< [Dv] per row
  const float *decay = nullptr, *beta = nullptr;  ///< one per row
  float* delta = nullptr;                         ///< [Dv] per row, written: beta * (v - S k)
  float* y = nullptr;                             ///< [Dv] per row, written: S q
  std::ptrdiff_t query_stride = 0, key_stride = 0, value_stride = 0, decay_stride = 0, delta_stride = 0, y_stride = 0;
};

/// Advances a state [Dv, Dk] over `past`, then walks `rows` from there; each does
///   S *= g;  d = beta * (v - S k);  S += d k^T;  y = S q        (docs/families/qwen3_5.md)
/// The state then holds what `past` made of it, and with `keep` also what `rows` did. Advancing over recorded rows
/// leaves the bits that walking them left.
void gated_delta(float* state, int value_dim, int key_dim, const RecordedRows& past, const DeltaRows& rows, bool keep);

/// Causal depthwise convolution and SiLU for channels [first, last).
///   window  [K-1, C]   rows before the first, oldest first
///   u       [rows, C]  input rows
///   taps    [K, C]     the last one multiplies the current row
///   y       [rows, last - first], stride y_stride
void causal_conv_silu(const float* window, const float* u, int rows, int channels, int kernel, const float* taps,
    float* y, std::ptrdiff_t y_stride, int first, int last);

/// window [K-1, C] becomes the last K-1 rows of (window, rows), for channels [first, last).
void slide_window(float* window, const float* rows, int count, int channels, int kernel, int first, int last);

}  // namespace foresay
