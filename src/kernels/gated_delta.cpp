#include "kernels/gated_delta.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/linear.h"
#include "kernels/row_ops.h"

namespace foresay {
namespace {

constexpr int kRows = 8;  // state rows [kRows, Dk] worked on together: they stay in the nearest cache

// Decay and write are two separate roundings in both callers; a fused form would change the bits of replayed rows.
void decay_rows(float* rows, int n, float decay) {
  for (int i = 0; i < n; ++i) rows[i] *= decay;
}

void write_row(float* row, int n, float delta, const float* k) {
  for (int i = 0; i < n; ++i) row[i] += delta * k[i];
}

}  // namespace

void gated_delta_step(float* state, int value_dim, int key_dim, float decay, float beta, const float* q, const float* k,
    const float* v, float* delta, float* y) {
  float read[kRows];
  for (int first = 0; first < value_dim; first += kRows) {
    const int count = std::min(kRows, value_dim - first);
    float* rows = state + static_cast<std::ptrdiff_t>(first) * key_dim;
    decay_rows(rows, count * key_dim, decay);
    dot_rows(rows, count, k, key_dim, read);
    for (int i = 0; i < count; ++i) {
      delta[first + i] = beta * (v[first + i] - read[i]);
      write_row(rows + static_cast<std::ptrdiff_t>(i) * key_dim, key_dim, delta[first + i], k);
    }
    dot_rows(rows, count, q, key_dim, y + first);
  }
}

void gated_delta_advance(float* state, int value_dim, int key_dim, float decay, const float* delta, const float* k) {
  for (int i = 0; i < value_dim; ++i) {
    float* row = state + static_cast<std::ptrdiff_t>(i) * key_dim;
    decay_rows(row, key_dim, decay);
    write_row(row, key_dim, delta[i], k);
  }
}

void causal_conv_silu(const float* window, const float* u, int rows, int channels, int kernel, const float* taps,
    float* y, int first, int last) {
  const int past = kernel - 1;
  for (int r = 0; r < rows; ++r) {
    for (int c = first; c < last; ++c) {
      float sum = 0;
      for (int j = 0; j < kernel; ++j) {
        const int t = r + j - past;  // negative: still in the window
        const float input = t < 0 ? window[static_cast<std::ptrdiff_t>(t + past) * channels + c]
                                  : u[static_cast<std::ptrdiff_t>(t) * channels + c];
        sum += taps[static_cast<std::ptrdiff_t>(c) * kernel + j] * input;
      }
      y[static_cast<std::ptrdiff_t>(r) * channels + c] = silu(sum);
    }
  }
}

void slide_window(float* window, const float* rows, int count, int channels, int kernel) {
  const int past = kernel - 1;
  const std::size_t row = static_cast<std::size_t>(channels);
  if (count == 0 || past == 0) return;
  const int from_rows = count < past ? count : past;
  const int stay = past - from_rows;
  if (stay > 0)
    std::memmove(window, window + static_cast<std::size_t>(from_rows) * row,
        static_cast<std::size_t>(stay) * row * sizeof(float));
  std::memcpy(window + static_cast<std::size_t>(stay) * row, rows + static_cast<std::size_t>(count - from_rows) * row,
      static_cast<std::size_t>(from_rows) * row * sizeof(float));
}

}  // namespace foresay
