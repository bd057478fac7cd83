// kernels/gated_delta_body.h: gated_delta.h over Lanes, compiled once per instruction set.
#pragma once

#include "kernels/gated_delta.h"
#include "kernels/row_ops_body.h"

namespace foresay::kernels::FORESAY_LANES {

// Decay and write are separate roundings in both functions; that is what makes replayed rows equal walked ones.

/// R rows of a state, `dim` floats each, over one recorded row.
template <int R>
inline void advance_rows(float* state, int dim, float decay, const float* delta, const float* k) {
  const Lanes g = splat(decay);
  for_each_lanes(dim, [&](int i, int n) {
    const Lanes key = load_up_to(k + i, n);
    for (int r = 0; r < R; ++r) {
      float* s = state + r * dim + i;
      store_up_to(s, fma(splat(delta[r]), key, g * load_up_to(s, n)), n);
    }
  });
}

template <int R>
inline void sums_of(const Lanes (&lanes)[R], float* out) {
  if constexpr (R % 4 == 0) {
    for (int r = 0; r < R; r += 4) sum_four(lanes[r], lanes[r + 1], lanes[r + 2], lanes[r + 3], out + r);
  } else {
    for (int r = 0; r < R; ++r) out[r] = sum(lanes[r]);
  }
}

/// R rows of a state over one row: read in `from`, written to `to`, which may be the same. `ahead`: as many floats as
/// they have, asked for on the way, evenly: half of them in either loop.
template <int R>
inline void walk_rows(const float* from, float* to, const float* ahead, int dim, float decay, float beta,
    const float* q, const float* k, const float* v, float* delta, float* y) {
  const Lanes g = splat(decay);
  Lanes read[R], out[R];
  for (int r = 0; r < R; ++r) read[r] = out[r] = splat(0);
  for_each_lanes(dim, [&](int i, int n) {
    const Lanes key = load_up_to(k + i, n);
    for (int r = 0; r < R; ++r) {
      if (r % 2 == 0) __builtin_prefetch(ahead + r * dim + i);
      read[r] = fma(g * load_up_to(from + r * dim + i, n), key, read[r]);
    }
  });
  sums_of<R>(read, delta);
  for (int r = 0; r < R; ++r) delta[r] = beta * (v[r] - delta[r]);
  for_each_lanes(dim, [&](int i, int n) {
    const Lanes key = load_up_to(k + i, n), query = load_up_to(q + i, n);
    for (int r = 0; r < R; ++r) {
      if (r % 2 == 1) __builtin_prefetch(ahead + r * dim + i);
      const Lanes s = fma(splat(delta[r]), key, g * load_up_to(from + r * dim + i, n));
      store_up_to(to + r * dim + i, s, n);
      out[r] = fma(s, query, out[r]);
    }
  });
  sums_of<R>(out, y);
}

/// R rows of the state, from value `first` on. Rows that do not count are walked in a copy, so that they leave no
/// trace.
template <int R>
inline void gated_delta_rows(
    float* state, int first, int dim, const RecordedRows& past, const DeltaRows& rows, bool keep) {
  alignas(64) float copy[R * kMostKeyDim];
  float* live = state + static_cast<std::ptrdiff_t>(first) * dim;
  for (int t = 0; t < past.count; ++t) {
    advance_rows<R>(live, dim, past.decay[t * past.decay_stride], past.delta + t * past.delta_stride + first,
        past.key + t * past.key_stride);
  }
  float* to = keep ? live : copy;
  for (int t = 0; t < rows.count; ++t) {
    const float* from = t == 0 ? live : to;
    const float* ahead = t == 0 ? live + R * dim : to;  // the next rows of the state, once
    walk_rows<R>(from, to, ahead, dim, rows.decay[t * rows.decay_stride], rows.beta[t * rows.decay_stride],
        rows.query + t * rows.query_stride, rows.key + t * rows.key_stride, rows.value + t * rows.value_stride + first,
        rows.delta + t * rows.delta_stride + first, rows.y + t * rows.y_stride + first);
  }
}

inline void gated_delta(
    float* state, int value_dim, int key_dim, const RecordedRows& past, const DeltaRows& rows, bool keep) {
  int i = 0;
  for (; i + kStateRows <= value_dim; i += kStateRows) {
    gated_delta_rows<kStateRows>(state, i, key_dim, past, rows, keep);
  }
  for (; i + 4 <= value_dim; i += 4) gated_delta_rows<4>(state, i, key_dim, past, rows, keep);
  for (; i < value_dim; ++i) gated_delta_rows<1>(state, i, key_dim, past, rows, keep);
}

inline void causal_conv_silu(const float* window, const float* u, int rows, int channels, int kernel, const float* taps,
    float* y, std::ptrdiff_t y_stride, int first, int last) {
  const int past = kernel - 1;
  for (int r = 0; r < rows; ++r) {
    for_each_lanes(last - first, [&](int i, int n) {
      const int c = first + i;
      Lanes sum = splat(0);
      for (int j = 0; j < kernel; ++j) {
        const std::ptrdiff_t t = r + j - past;  // negative: still in the window
        const float* input = t < 0 ? window + (t + past) * channels + c : u + t * channels + c;
        const float* tap = taps + static_cast<std::ptrdiff_t>(j) * channels + c;
        sum = fma(load_up_to(tap, n), load_up_to(input, n), sum);
      }
      store_up_to(y + r * y_stride + i, silu(sum), n);
    });
  }
}

}  // namespace foresay::kernels::FORESAY_LANES
