// kernels/row_ops_body.h: row_ops.h over Lanes, compiled once per instruction set.
#pragma once

#include <cmath>

namespace foresay::kernels::FORESAY_LANES {

/// Calls f(i, n) for each run of 16 elements, n of them in the last.
template <typename F>
inline void for_each_lanes(int n, F f) {
  int i = 0;
  for (; i + 16 <= n; i += 16) f(i, 16);
  if (i < n) f(i, n - i);
}

inline Lanes load_up_to(const float* p, int n) {
  return n == 16 ? load(p) : load_part(p, n);
}
inline void store_up_to(float* p, Lanes x, int n) {
  if (n == 16) {
    store(p, x);
  } else {
    store_part(p, x, n);
  }
}

/// e^x = 2^n e^r with |r| <= ln 2 / 2, and a polynomial of degree 7 for e^r. ln 2 is taken off in two parts.
/// Coefficients: Cephes expf. At the borders the power of two becomes 0 and infinity.
inline Lanes exp(Lanes x) {
  x = max(splat(-88), min(splat(89), x));
  const Lanes n = rounded(x * splat(1.44269504f));
  const Lanes r = fma(n, splat(2.12194440e-4f), fma(n, splat(-0.693359375f), x));
  Lanes p = splat(1.9875691500e-4f);
  for (const float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}) {
    p = fma(p, r, splat(c));
  }
  return (fma(p, r * r, r) + splat(1)) * power_of_two(n);
}
inline Lanes sigmoid(Lanes x) {
  return splat(1) / (splat(1) + exp(splat(0) - x));
}
inline Lanes silu(Lanes x) {
  return x / (splat(1) + exp(splat(0) - x));
}

inline float sum_of_squares(const float* x, int n) {
  Lanes squares = splat(0);
  for_each_lanes(n, [&](int i, int count) {
    const Lanes v = load_up_to(x + i, count);
    squares = fma(v, v, squares);
  });
  return sum(squares);
}

inline void rms_norm_row(const float* x, const float* gain, float eps, int n, float* y) {
  const Lanes scale = splat(1.0f / std::sqrt(sum_of_squares(x, n) / static_cast<float>(n) + eps));
  for_each_lanes(n, [&](int i, int count) {
    store_up_to(y + i, load_up_to(x + i, count) * scale * load_up_to(gain + i, count), count);
  });
}

inline void gated_rms_norm_row(const float* x, const float* gain, float eps, const float* z, int n, float* y) {
  const Lanes scale = splat(1.0f / std::sqrt(sum_of_squares(x, n) / static_cast<float>(n) + eps));
  for_each_lanes(n, [&](int i, int count) {
    const Lanes normed = load_up_to(x + i, count) * scale * load_up_to(gain + i, count);
    store_up_to(y + i, normed * silu(load_up_to(z + i, count)), count);
  });
}

inline void l2_norm_row(const float* x, float eps, float scale, int n, float* y) {
  const Lanes factor = splat(scale / std::sqrt(sum_of_squares(x, n) + eps));
  for_each_lanes(n, [&](int i, int count) { store_up_to(y + i, load_up_to(x + i, count) * factor, count); });
}

inline void rope_row(float* x, const float* cosines, const float* sines, int pairs) {
  for_each_lanes(pairs, [&](int j, int count) {
    const Lanes a = load_up_to(x + j, count), b = load_up_to(x + j + pairs, count);
    const Lanes c = load_up_to(cosines + j, count), s = load_up_to(sines + j, count);
    store_up_to(x + j, a * c - b * s, count);
    store_up_to(x + j + pairs, b * c + a * s, count);
  });
}

inline void swiglu_row(const float* gate, const float* up, float limit, int n, float* y) {
  if (limit > 0) {
    const Lanes most = splat(limit), least = splat(-limit);
    for_each_lanes(n, [&](int i, int count) {
      const Lanes g = min(most, silu(load_up_to(gate + i, count)));
      store_up_to(y + i, g * max(least, min(most, load_up_to(up + i, count))), count);
    });
    return;
  }
  for_each_lanes(n, [&](int i, int count) {
    store_up_to(y + i, silu(load_up_to(gate + i, count)) * load_up_to(up + i, count), count);
  });
}

inline void sigmoid_gate_row(const float* gate, int n, float* y) {
  for_each_lanes(n, [&](int i, int count) {
    store_up_to(y + i, load_up_to(y + i, count) * sigmoid(load_up_to(gate + i, count)), count);
  });
}

inline void add_row(const float* x, const float* z, int n, float* y) {
  for_each_lanes(
      n, [&](int i, int count) { store_up_to(y + i, load_up_to(x + i, count) + load_up_to(z + i, count), count); });
}

inline float exp(float x) {
  float y[16];
  store(y, exp(splat(x)));
  return y[0];
}

inline void exp_row(const float* x, int n, float* y) {
  for_each_lanes(n, [&](int i, int count) { store_up_to(y + i, exp(load_up_to(x + i, count)), count); });
}

}  // namespace foresay::kernels::FORESAY_LANES
