// MLX lane: softmax attention over contiguous caches.
#include <algorithm>
#include <cmath>

#include "model/ops_mlx/kv_cache_mlx.h"
#include "model/ops_mlx/ops_mlx.h"

namespace foresay {
namespace {

/// Cosines and sines [n, 1, pairs] at some positions. Angles are formed in double on the host: at position 2^18 a
/// float32 product is off by 0.01 rad.
struct Angles {
  mx::array cosines, sines;
};

Angles rope_angles(const Rope& rope, const std::vector<int>& positions) {
  std::vector<float> cosines, sines;
  for (const int position : positions) {
    for (const double frequency : rope.inv_freq) {
      const double angle = position * frequency;
      cosines.push_back(static_cast<float>(std::cos(angle)) * rope.amplitude);
      sines.push_back(static_cast<float>(std::sin(angle)) * rope.amplitude);
    }
  }
  const mx::Shape shape = {static_cast<int>(positions.size()), 1, static_cast<int>(rope.inv_freq.size())};
  return {mx::array(cosines.begin(), shape, mx::float32), mx::array(sines.begin(), shape, mx::float32)};
}

/// Dimensions [from, to) of x [n, H, Dh].
mx::array dims(const mx::array& x, int from, int to) {
  return mx::slice(x, {0, 0, from}, {x.shape(0), x.shape(1), to});
}

/// Turns the pairs (j, j + pairs) of x [n, H, Dh].
mx::array rotate(const mx::array& x, const Angles& angles) {
  const int pairs = angles.cosines.shape(2), dim = x.shape(2);
  const mx::array a = dims(x, 0, pairs), b = dims(x, pairs, 2 * pairs);
  std::vector<mx::array> parts = {mx::subtract(mx::multiply(a, angles.cosines), mx::multiply(b, angles.sines)),
      mx::add(mx::multiply(b, angles.cosines), mx::multiply(a, angles.sines))};
  if (2 * pairs < dim) parts.push_back(dims(x, 2 * pairs, dim));
  return mx::concatenate(std::move(parts), 2);
}

/// [n, H, Dh] -> [1, H, n, Dh]
mx::array by_head(const mx::array& x) {
  return mx::expand_dims(mx::transpose(x, {1, 0, 2}), 0);
}

/// Attention of queries [1, H, n, Dh] at `positions`, ascending, over a cache that ends with the last row of the pass.
/// -> [n, H * Dh]
mx::array attend(const mx::array& queries, const std::vector<int>& positions, const MlxKvCache& cache, float scale) {
  const KvShape& shape = cache.shape();
  const int n = static_cast<int>(positions.size()), length = cache.length();
  const int first = shape.first_seen(positions.front());  // nobody sees what is before
  const bool are_the_last = positions.front() == length - n && positions.back() == length - 1;
  const bool causal = are_the_last && shape.first_seen(positions.back()) == first;
  std::optional<mx::array> mask;
  if (!causal) {
    std::vector<std::uint8_t> seen;
    for (const int position : positions) {
      const int from = shape.first_seen(position);
      for (int key = first; key < length; ++key) seen.push_back(from <= key && key <= position ? 1 : 0);
    }
    mask = mx::array(seen.begin(), {n, length - first}, mx::bool_);
  }
  const mx::array mixed = mx::fast::scaled_dot_product_attention(
      queries, cache.keys(first), cache.values(first), scale, causal && n > 1 ? "causal" : "", mask);
  return mx::reshape(mx::transpose(mixed, {0, 2, 1, 3}), {n, -1});
}

}  // namespace

Tensor MlxOps::attention(const AttentionSpec& spec, const Tensor& q, std::span<const int> query_rows, const Tensor& k,
    const Tensor& v, std::span<const CacheSlice> slices) {
  const int dim = spec.head_dim, q_stride = spec.output_gate ? 2 * dim : dim, width = spec.heads * dim;
  const int queries = static_cast<int>(query_rows.size());
  on_mlx::check(k.width == spec.kv_heads * dim && v.width == k.width, "attention", "k or v has the wrong width");
  on_mlx::check(
      queries == 0 || (q.width == spec.heads * q_stride && q.rows == queries), "attention", "q has the wrong shape");

  std::vector<int> positions(static_cast<std::size_t>(k.rows));
  for (const CacheSlice& slice : slices) {
    for (int i = 0; i < slice.count; ++i) {
      positions[static_cast<std::size_t>(slice.first + i)] = slice.cache->length() + i;
    }
  }
  const mx::array keys = rotate(mx::fast::rms_norm(mx::reshape(on_mlx::array(k), {k.rows, spec.kv_heads, dim}),
                                    on_mlx::array(spec.k_norm), spec.norm_eps),
      rope_angles(spec.rope, positions));                                                // [R, Hkv, Dh]
  const mx::array values = mx::reshape(on_mlx::array(v), {v.rows, spec.kv_heads, dim});  // [R, Hkv, Dh]
  const std::vector<CacheSlice> sorted = on_mlx::in_row_order(slices);
  for (const CacheSlice& slice : sorted) {
    auto& cache = static_cast<MlxKvCache&>(*slice.cache);
    cache.append(by_head(on_mlx::rows(keys, slice.first, slice.count)),
        by_head(on_mlx::rows(values, slice.first, slice.count)), slice.provisional);
    for (const mx::array& array : cache.arrays()) pending_.push_back(array);
  }
  if (queries == 0) return on_mlx::tensor(mx::zeros({0, width}, mx::float32));

  std::vector<int> query_positions;
  for (const int row : query_rows) query_positions.push_back(positions.at(static_cast<std::size_t>(row)));
  const mx::array all = mx::reshape(on_mlx::array(q), {queries, spec.heads, q_stride});
  const mx::array turned = rotate(mx::fast::rms_norm(dims(all, 0, dim), on_mlx::array(spec.q_norm), spec.norm_eps),
      rope_angles(spec.rope, query_positions));  // [n, H, Dh]
  std::vector<mx::array> parts;
  std::size_t next = 0;
  for (const CacheSlice& slice : sorted) {
    const std::size_t from = next;
    while (next < query_rows.size() && query_rows[next] < slice.first + slice.count) ++next;
    if (next == from) continue;
    const std::vector<int> own(query_positions.begin() + static_cast<std::ptrdiff_t>(from),
        query_positions.begin() + static_cast<std::ptrdiff_t>(next));
    parts.push_back(attend(by_head(on_mlx::rows(turned, static_cast<int>(from), static_cast<int>(next - from))), own,
        static_cast<const MlxKvCache&>(*slice.cache), spec.scale));
  }
  mx::array out = mx::concatenate(std::move(parts), 0);  // [n, H * Dh]
  on_mlx::check(out.shape(0) == queries, "attention", "a query row lies in no slice");
  if (spec.output_gate) {
    out = mx::multiply(out, mx::sigmoid(mx::reshape(dims(all, dim, q_stride), {queries, width})));
  }
  return on_mlx::tensor(std::move(out));
}

}  // namespace foresay
