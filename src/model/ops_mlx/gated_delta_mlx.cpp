// MLX lane: GatedDeltaNet between its projections, row by row as array operations.
#include <cmath>

#include "model/ops_mlx/ops_mlx.h"
#include "model/ops_mlx/recurrent_cache_mlx.h"

namespace foresay {
namespace {

constexpr float kL2Eps = 1e-6f;  // fixed, on the sum of squares; not rms_norm_eps (docs/families/qwen3_5.md)
constexpr int kPiece = 64;       // rows after which a prompt's graph is evaluated, so that it stays small

mx::array silu(const mx::array& x) {
  return mx::multiply(x, mx::sigmoid(x));
}

/// Causal depthwise convolution and SiLU: all [K-1 + rows, C], taps [K, C] -> [rows, C].
mx::array convolve(const mx::array& all, const mx::array& taps, int rows) {
  const int kernel = taps.shape(0);
  const auto tap = [&](int j) { return mx::multiply(on_mlx::rows(all, j, rows), on_mlx::rows(taps, j, 1)); };
  mx::array sum = tap(0);
  for (int j = 1; j < kernel; ++j) sum = mx::add(sum, tap(j));
  return silu(sum);
}

/// Channels [from, from + heads * dim) of u [rows, C] as [rows, heads, dim].
mx::array heads_of(const mx::array& u, int from, int heads, int dim) {
  const int rows = u.shape(0);
  return mx::reshape(mx::slice(u, {0, from}, {rows, from + heads * dim}), {rows, heads, dim});
}

mx::array l2_norm(const mx::array& x) {
  const mx::array squares = mx::sum(mx::square(x), -1, /*keepdims=*/true);
  return mx::divide(x, mx::sqrt(mx::add(squares, mx::array(kL2Eps))));
}

}  // namespace

Tensor MlxOps::gated_delta(const GatedDeltaSpec& spec, const Tensor& qkv, const Tensor& z, const Tensor& b,
    const Tensor& a, std::span<const CacheSlice> slices) {
  const RecurrentShape& s = spec.shape;
  on_mlx::check(qkv.width == s.conv_channels && z.width == s.value_heads * s.value_dim && b.width == s.value_heads &&
                    a.width == s.value_heads,
      "gated_delta", "an input has the wrong width");
  std::vector<mx::array> parts;
  for (const CacheSlice& slice : on_mlx::in_row_order(slices)) {
    const auto part = [&](const Tensor& x) { return on_mlx::rows(on_mlx::array(x), slice.first, slice.count); };
    parts.push_back(recurrence(spec, part(qkv), part(b), part(a), slice));
  }
  const mx::array y = mx::concatenate(std::move(parts), 0);  // [R, nv, Dv]
  const mx::array normed = mx::fast::rms_norm(y, on_mlx::array(spec.norm), spec.norm_eps);
  return on_mlx::tensor(mx::multiply(mx::reshape(normed, {z.rows, z.width}), silu(on_mlx::array(z))));
}

mx::array MlxOps::recurrence(
    const GatedDeltaSpec& spec, const mx::array& qkv, const mx::array& b, const mx::array& a, const CacheSlice& slice) {
  auto& cache = static_cast<MlxRecurrentCache&>(*slice.cache);
  const RecurrentShape& s = spec.shape;
  const int rows = slice.count, q_width = s.key_heads * s.key_dim;
  cache.begin(rows);

  const mx::array all = mx::concatenate({cache.window(), qkv}, 0);  // [K-1 + rows, C]
  const mx::array u = convolve(all, mx::reshape(on_mlx::array(spec.conv), {s.conv_kernel, s.conv_channels}), rows);
  const mx::array query = mx::multiply(l2_norm(heads_of(u, 0, s.key_heads, s.key_dim)),
      mx::array(1.0f / std::sqrt(static_cast<float>(s.key_dim))));                                 // [rows, nk, Dk]
  const mx::array key = l2_norm(heads_of(u, q_width, s.key_heads, s.key_dim));                     // [rows, nk, Dk]
  const mx::array value = heads_of(u, 2 * q_width, s.value_heads, s.value_dim);                    // [rows, nv, Dv]
  const mx::array rate = mx::negative(mx::exp(on_mlx::array(spec.a_log)));                         // [nv]
  const mx::array step = mx::logaddexp(mx::add(a, on_mlx::array(spec.dt_bias)), mx::array(0.0f));  // softplus
  const mx::array decay = mx::reshape(mx::exp(mx::multiply(rate, step)), {rows, s.value_heads, 1, 1});

  // One array per row and kind: the walk below then makes no views.
  const auto split = [rows](const mx::array& x) { return mx::split(x, rows, 0); };
  const auto column = [&](const mx::array& x) { return mx::reshape(x, {rows, s.value_heads, -1, 1}); };
  const mx::array key_row = cache.key_rows(key);  // [rows, nv, 1, Dk]
  const auto queries = split(column(cache.key_rows(query))), keys = split(column(key_row)), key_rows = split(key_row);
  const auto values = split(column(value)), decays = split(decay), betas = split(column(mx::sigmoid(b)));
  std::vector<mx::array> outputs, deltas;
  mx::array state = cache.state();  // [1, nv, Dv, Dk]; arrays do not change, so the cache's own stays as it is
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
    const mx::array decayed = mx::multiply(state, decays[r]);
    deltas.push_back(mx::multiply(betas[r], mx::subtract(values[r], mx::matmul(decayed, keys[r]))));  // [1, nv, Dv, 1]
    state = MlxRecurrentCache::write(decayed, deltas.back(), key_rows[r]);
    outputs.push_back(mx::matmul(state, queries[r]));  // [1, nv, Dv, 1]
    if (outputs.size() % kPiece == 0 && !slice.provisional) {
      std::vector<mx::array> piece(outputs.end() - kPiece, outputs.end());
      piece.push_back(state);
      mx::async_eval(std::move(piece));
    }
  }

  if (slice.provisional) {
    cache.record({rows, qkv, key, mx::concatenate(std::move(deltas), 0), decay});
  } else {
    // Copied, or the window would hold on to the whole prompt.
    cache.commit(rows, mx::contiguous(on_mlx::rows(all, rows, s.conv_kernel - 1)), state);
  }
  for (const mx::array& array : cache.arrays()) pending_.push_back(array);
  return mx::reshape(mx::concatenate(std::move(outputs), 0), {rows, s.value_heads, s.value_dim});
}

}  // namespace foresay
