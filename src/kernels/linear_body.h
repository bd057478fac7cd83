// kernels/linear_body.h: linear.h over Lanes, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/linear.h"
#include "kernels/unpack_row_body.h"

namespace foresay::kernels::FORESAY_LANES {

/// Weight rows as floats, `stride` apart.
struct FloatRows {
  const float* rows;
  std::ptrdiff_t stride;
  [[nodiscard]] FloatRows behind(int count) const { return {rows + count * stride, stride}; }
  [[nodiscard]] Lanes at(int row, int i) const { return load(rows + row * stride + i); }
  [[nodiscard]] Lanes part(int row, int i, int n) const { return load_part(rows + row * stride + i, n); }
};

/// Weight rows as bf16 at any address, `stride` elements apart.
struct Bf16Rows {
  const std::byte* rows;
  std::ptrdiff_t stride;
  [[nodiscard]] Bf16Rows behind(int count) const { return {rows + 2 * count * stride, stride}; }
  [[nodiscard]] Lanes at(int row, int i) const { return load_bf16(rows + 2 * (row * stride + i)); }
  [[nodiscard]] Lanes part(int row, int i, int n) const {
    std::uint16_t all[16] = {};
    std::memcpy(all, rows + 2 * (row * stride + i), static_cast<std::size_t>(n) * 2);
    return load_bf16(all);
  }
};

/// The same, of a matrix that is read once: what a tile reads is asked for while the tile before it is read.
struct Bf16Stream : Bf16Rows {
  [[nodiscard]] Bf16Stream behind(int count) const { return {Bf16Rows::behind(count)}; }
  [[nodiscard, gnu::always_inline]] Lanes at(int row, int i) const {
    __builtin_prefetch(rows + 2 * ((row + kLinearTile) * stride + i), 0, 2);
    return Bf16Rows::at(row, i);
  }
};

/// y[r * y_stride + j] = dot(x[r], w[j]) for W weight rows and R rows of x.
template <int W, int R, typename Weights>
inline void dot_tile(
    const float* x, std::ptrdiff_t x_stride, const Weights& w, int n, float* y, std::ptrdiff_t y_stride) {
  Lanes acc[W][R];
  for (int j = 0; j < W; ++j) {
    for (int r = 0; r < R; ++r) acc[j][r] = splat(0);
  }
  int i = 0;
  for (; i + 16 <= n; i += 16) {
    Lanes weights[W];
    for (int j = 0; j < W; ++j) weights[j] = w.at(j, i);
    for (int r = 0; r < R; ++r) {
      const Lanes v = load(x + r * x_stride + i);
      for (int j = 0; j < W; ++j) acc[j][r] = fma(v, weights[j], acc[j][r]);
    }
  }
  if (i < n) {
    for (int r = 0; r < R; ++r) {
      const Lanes v = load_part(x + r * x_stride + i, n - i);
      for (int j = 0; j < W; ++j) acc[j][r] = fma(v, w.part(j, i, n - i), acc[j][r]);
    }
  }
  for (int r = 0; r < R; ++r) {
    if constexpr (W == 4) {
      sum_four(acc[0][r], acc[1][r], acc[2][r], acc[3][r], y + r * y_stride);
    } else {
      for (int j = 0; j < W; ++j) y[r * y_stride + j] = sum(acc[j][r]);
    }
  }
}

/// The same for any number of rows of x, in tiles that fit the registers.
template <int W, typename Weights>
inline void dot_tiles(
    const float* x, std::ptrdiff_t x_stride, int rows, const Weights& w, int n, float* y, std::ptrdiff_t y_stride) {
  int r = 0;
  for (; r + kTileRows <= rows; r += kTileRows) {
    dot_tile<W, kTileRows>(x + r * x_stride, x_stride, w, n, y + r * y_stride, y_stride);
  }
  if constexpr (kTileRows > 2) {
    if (rows - r == 3) {
      dot_tile<W, 3>(x + r * x_stride, x_stride, w, n, y + r * y_stride, y_stride);
      return;
    }
  }
  if (rows - r == 2) dot_tile<W, 2>(x + r * x_stride, x_stride, w, n, y + r * y_stride, y_stride);
  if (rows - r == 1) dot_tile<W, 1>(x + r * x_stride, x_stride, w, n, y + r * y_stride, y_stride);
}

/// Any number of weight rows.
template <typename Weights>
inline void dot_all(
    const float* x, std::ptrdiff_t x_stride, int rows, Weights w, int count, int n, float* y, std::ptrdiff_t y_stride) {
  for (; count >= kLinearTile; count -= kLinearTile, y += kLinearTile, w = w.behind(kLinearTile)) {
    dot_tiles<kLinearTile>(x, x_stride, rows, w, n, y, y_stride);
  }
  for (; count > 0; --count, ++y, w = w.behind(1)) dot_tiles<1>(x, x_stride, rows, w, n, y, y_stride);
}

/// Rows above which a bf16 tile is widened once for all of them.
constexpr int kWidenedOnce = 4 * kTileRows;

inline void linear(const float* x, int rows, const WeightView& w, float* y, int first, int last, float* scratch) {
  const std::ptrdiff_t in = w.in, at = static_cast<std::ptrdiff_t>(first) * in;
  if (w.type == WeightType::f32 && reinterpret_cast<std::uintptr_t>(w.data) % alignof(float) == 0) {
    dot_all(x, in, rows, FloatRows{static_cast<const float*>(w.data) + at, in}, last - first, w.in, y + first, w.out);
    return;
  }
  if (w.type == WeightType::bf16 && rows <= kWidenedOnce) {
    const auto* data = static_cast<const std::byte*>(w.data) + 2 * at;
    dot_all(x, in, rows, Bf16Stream{{data, in}}, last - first, w.in, y + first, w.out);
    return;
  }
  for (int n = first; n < last; n += kLinearTile) {
    const int count = last - n < kLinearTile ? last - n : kLinearTile;
    for (int j = 0; j < count; ++j) FORESAY_LANES::unpack_row(w, n + j, scratch + j * in);
    dot_all(x, in, rows, FloatRows{scratch, in}, count, w.in, y + n, w.out);
  }
}

inline void dot_rows(const float* rows, int count, const float* v, int n, float* y) {
  dot_all(v, n, 1, FloatRows{rows, n}, count, n, y, 0);
}

}  // namespace foresay::kernels::FORESAY_LANES
