// CPU lane: softmax attention over paged caches.
#include <algorithm>
#include <cmath>

#include "kernels/attention.h"
#include "kernels/row_ops.h"
#include "model/ops_cpu/ops_cpu.h"

namespace foresay {
namespace {

/// Cosines and sines of one position. Angles are formed in double: at position 2^18 a float32 product is off by 0.01
/// rad.
void rope_angles(const Rope& rope, int position, float* cosines, float* sines) {
  for (std::size_t j = 0; j < rope.inv_freq.size(); ++j) {
    const double angle = position * rope.inv_freq[j];
    cosines[j] = static_cast<float>(std::cos(angle)) * rope.amplitude;
    sines[j] = static_cast<float>(std::sin(angle)) * rope.amplitude;
  }
}

struct RowPlace {
  PagedKvCache* cache = nullptr;
  int position = 0;
};

}  // namespace

Tensor CpuOps::attention(const AttentionSpec& spec, const Tensor& q, std::span<const int> query_rows, const Tensor& k,
    const Tensor& v, std::span<const CacheSlice> slices) {
  const int dim = spec.head_dim, pairs = static_cast<int>(spec.rope.inv_freq.size());
  const int q_stride = spec.output_gate ? 2 * dim : dim;
  cpu::check(k.width == spec.kv_heads * dim && v.width == k.width, "attention", "k or v has the wrong width");
  cpu::check(query_rows.empty() || (q.width == spec.heads * q_stride && q.rows == static_cast<int>(query_rows.size())),
      "attention", "q has the wrong shape");

  // Where each row goes, and its rotation.
  std::vector<RowPlace> places(static_cast<std::size_t>(k.rows));
  for (const CacheSlice& slice : slices) {
    auto& cache = static_cast<PagedKvCache&>(*slice.cache);
    const int first = cache.append(slice.count, slice.provisional);
    for (int i = 0; i < slice.count; ++i) places[static_cast<std::size_t>(slice.first + i)] = {&cache, first + i};
  }
  std::vector<float> angles(static_cast<std::size_t>(k.rows) * 2 * static_cast<std::size_t>(pairs));
  const auto cosines = [&](int row) {
    return angles.data() + static_cast<std::size_t>(row) * 2 * static_cast<std::size_t>(pairs);
  };

  pool_.parallel_for(k.rows, 1, [&](int begin, int end) {
    for (int r = begin; r < end; ++r) {
      const RowPlace& place = places[static_cast<std::size_t>(r)];
      rope_angles(spec.rope, place.position, cosines(r), cosines(r) + pairs);
      for (int h = 0; h < spec.kv_heads; ++h) {
        float* key = place.cache->key(place.position, h);
        rms_norm_row(cpu::row(k, r) + h * dim, cpu::data(spec.k_norm), spec.norm_eps, dim, key);
        rope_row(key, cosines(r), cosines(r) + pairs, pairs);
        std::copy_n(cpu::row(v, r) + h * dim, dim, place.cache->value(place.position, h));
      }
    }
  });

  cpu::Builder out(static_cast<int>(query_rows.size()), spec.heads * dim);
  const int group = spec.heads / spec.kv_heads;
  pool_.parallel_for(static_cast<int>(query_rows.size()) * spec.heads, 1, [&](int begin, int end) {
    thread_local std::vector<float> query;
    thread_local std::vector<KvBlock> blocks;
    float scores[PagedKvCache::kPage];
    query.resize(static_cast<std::size_t>(dim));
    for (int item = begin; item < end; ++item) {
      const int n = item / spec.heads, h = item % spec.heads, r = query_rows[static_cast<std::size_t>(n)];
      const RowPlace& place = places[static_cast<std::size_t>(r)];
      const float* source = cpu::row(q, n) + h * q_stride;
      rms_norm_row(source, cpu::data(spec.q_norm), spec.norm_eps, dim, query.data());
      rope_row(query.data(), cosines(r), cosines(r) + pairs, pairs);
      blocks.clear();
      for (int from = 0; from <= place.position; from += PagedKvCache::kPage) {
        blocks.push_back({place.cache->key(from, h / group), place.cache->value(from, h / group),
            std::min(PagedKvCache::kPage, place.position + 1 - from)});
      }
      float* y = out.row(n) + h * dim;
      attend(query.data(), blocks, dim, dim, spec.scale, scores, y);
      if (spec.output_gate) {
        for (int d = 0; d < dim; ++d) y[d] *= sigmoid(source[dim + d]);
      }
    }
  });
  return std::move(out).done();
}

}  // namespace foresay
