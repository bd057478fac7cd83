// CPU lane: softmax attention over paged caches.
#include <algorithm>
#include <cmath>

#include "kernels/attention.h"
#include "kernels/row_ops.h"
#include "model/ops_cpu/ops_cpu.h"

namespace foresay {
namespace {

/// Positions are cut into ranges of so many pages, wherever a query stands; each range is a task of its own, and a
/// query's ranges are joined in order. So one long sequence keeps every thread busy.
constexpr int kPagesPerRange = 16;
constexpr int kRowsPerTask = 16;  // rows that read a range together

constexpr int kRange = kPagesPerRange * PagedKvCache::kPage;

/// A row's position, and the ranges that it sees something of.
struct RowPlace {
  RowPlace() = default;
  RowPlace(PagedKvCache& its_cache, int its_position)
      : cache(&its_cache),
        position(its_position),
        first_seen(its_cache.shape().first_seen(its_position)),
        first_range(first_seen / kRange),
        ranges(its_position / kRange + 1 - first_range) {}

  PagedKvCache* cache = nullptr;
  int position = 0, first_seen = 0;
  int first_range = 0, ranges = 0;
};

/// Rows [first, last) of the queries, one KV head, one range of pages.
struct Task {
  int first = 0, last = 0, kv_head = 0, range = 0;
};

/// What a query sees of a range, cut at the borders of pages: a block may begin inside a page, where a window does.
void blocks_of(const RowPlace& place, int kv_head, int range, std::vector<KvBlock>& blocks) {
  blocks.clear();
  const int last = std::min(place.position + 1, (range + 1) * kRange);
  for (int from = std::max(place.first_seen, range * kRange), to = 0; from < last; from = to) {
    to = std::min(last, (from / PagedKvCache::kPage + 1) * PagedKvCache::kPage);
    blocks.push_back(place.cache->block(from, kv_head, to - from));
  }
}

}  // namespace

/// Cosines and sines per position. Angles are formed in double: at position 2^18 a float32 product is off by 0.01 rad.
const float* CpuOps::angles(const Rope& rope, std::span<const int> positions) {
  auto known = std::ranges::find(angles_, rope, &Angles::rope);
  if (known == angles_.end()) {
    if (angles_.size() == kMostRopes) angles_.clear();
    known = angles_.insert(angles_.end(), {.rope = rope});
  }
  Angles& a = *known;
  if (std::ranges::equal(a.positions, positions)) return a.values.data();
  a.positions.assign(positions.begin(), positions.end());
  const std::size_t pairs = rope.inv_freq.size();
  a.values.resize(positions.size() * 2 * pairs);
  for_rows(static_cast<int>(positions.size()), [&](int r) {
    float* cosines = a.values.data() + static_cast<std::size_t>(r) * 2 * pairs;
    for (std::size_t j = 0; j < pairs; ++j) {
      const double angle = a.positions[static_cast<std::size_t>(r)] * rope.inv_freq[j];
      cosines[j] = static_cast<float>(std::cos(angle)) * rope.amplitude;
      cosines[pairs + j] = static_cast<float>(std::sin(angle)) * rope.amplitude;
    }
  });
  return a.values.data();
}

Tensor CpuOps::attention(const AttentionSpec& spec, const Tensor& q, std::span<const int> query_rows, const Tensor& k,
    const Tensor& v, std::span<const CacheSlice> slices) {
  const ProfileScope timed(profile(), "attention");
  const int dim = spec.head_dim, pairs = static_cast<int>(spec.rope.inv_freq.size());
  const int q_stride = spec.output_gate ? 2 * dim : dim, group = spec.heads / spec.kv_heads;
  cpu::check(k.width == spec.kv_heads * dim && v.width == k.width, "attention", "k or v has the wrong width");
  cpu::check(query_rows.empty() || (q.width == spec.heads * q_stride && q.rows == static_cast<int>(query_rows.size())),
      "attention", "q has the wrong shape");

  // Where each row goes, and its rotation.
  std::vector<RowPlace> places(static_cast<std::size_t>(k.rows));
  std::vector<int> positions(places.size());
  for (const CacheSlice& slice : slices) {
    auto& cache = static_cast<PagedKvCache&>(*slice.cache);
    const int first = cache.append(slice.count, slice.provisional);
    for (int i = 0; i < slice.count; ++i) {
      const auto row = static_cast<std::size_t>(slice.first + i);
      places[row] = RowPlace(cache, first + i);
      positions[row] = first + i;
    }
  }
  const float* const turns = angles(spec.rope, positions);
  const auto cosines = [&](int row) { return turns + static_cast<std::ptrdiff_t>(row) * 2 * pairs; };

  for_rows(k.rows, [&](int r) {
    thread_local std::vector<float> key;
    key.resize(static_cast<std::size_t>(dim));
    const RowPlace& place = places[static_cast<std::size_t>(r)];
    for (int h = 0; h < spec.kv_heads; ++h) {
      rms_norm_row(cpu::row(k, r) + h * dim, cpu::data(spec.k_norm), spec.norm_eps, dim, key.data());
      rope_row(key.data(), cosines(r), cosines(r) + pairs, pairs);
      place.cache->write(place.position, h, key.data(), cpu::row(v, r) + h * dim);
    }
  });

  const int count = static_cast<int>(query_rows.size());
  cpu::Builder out = make(count, spec.heads * dim), queries = make(count, spec.heads * dim);
  for_rows(count, [&](int n) {
    const int r = query_rows[static_cast<std::size_t>(n)];
    for (int h = 0; h < spec.heads; ++h) {
      float* query = queries.row(n) + h * dim;
      rms_norm_row(cpu::row(q, n) + h * q_stride, cpu::data(spec.q_norm), spec.norm_eps, dim, query);
      rope_row(query, cosines(r), cosines(r) + pairs, pairs);
    }
  });

  // States of all queries: [row, head, range of the row's own], `most` ranges apart.
  const auto place_of = [&](int n) -> const RowPlace& {
    return places[static_cast<std::size_t>(query_rows[static_cast<std::size_t>(n)])];
  };
  int most = 0;
  for (int n = 0; n < count; ++n) most = std::max(most, place_of(n).ranges);
  std::vector<Task> tasks;
  for (int first = 0; first < count;) {
    int last = first + 1;  // rows of one sequence, ascending: the last sees the last range, the first the first
    while (last < count && last - first < kRowsPerTask && place_of(last).cache == place_of(first).cache) ++last;
    const int end = place_of(last - 1).first_range + place_of(last - 1).ranges;
    for (int range = place_of(first).first_range; range < end; ++range) {
      for (int head = 0; head < spec.kv_heads; ++head) tasks.push_back({first, last, head, range});
    }
    first = last;
  }
  std::vector<SoftmaxState> states(static_cast<std::size_t>(count * spec.heads) * static_cast<std::size_t>(most));
  const auto state_at = [&](int n, int head, int range) -> SoftmaxState& {
    return states[static_cast<std::size_t>(n * spec.heads + head) * static_cast<std::size_t>(most) +
                  static_cast<std::size_t>(range)];
  };
  cpu::Builder partial = make(count * spec.heads, most * dim);

  pool_.parallel_for(static_cast<int>(tasks.size()), 1, [&](int begin, int end) {
    thread_local std::vector<KvBlock> blocks;
    for (int i = begin; i < end; ++i) {
      const Task& task = tasks[static_cast<std::size_t>(i)];
      for (int n = task.first; n < task.last; ++n) {
        const RowPlace& place = place_of(n);
        const int own = task.range - place.first_range;  // which of the row's ranges
        if (own < 0 || own >= place.ranges) continue;
        blocks_of(place, task.kv_head, task.range, blocks);
        for (int h = task.kv_head * group; h < (task.kv_head + 1) * group; h += kMostQueries) {
          const int together = std::min(kMostQueries, (task.kv_head + 1) * group - h);
          const float* pointers[kMostQueries];
          SoftmaxState some[kMostQueries];
          for (int j = 0; j < together; ++j) {
            pointers[j] = queries.row(n) + (h + j) * dim;
            some[j].out = partial.row(n * spec.heads + h + j) + own * dim;
          }
          attend(pointers, together, blocks, place.cache->type(), dim, dim, spec.scale, some);
          for (int j = 0; j < together; ++j) state_at(n, h + j, own) = some[j];
        }
      }
    }
  });
  for_rows(count, [&](int n) {
    for (int h = 0; h < spec.heads; ++h) {
      float* y = out.row(n) + h * dim;
      join_softmax({&state_at(n, h, 0), static_cast<std::size_t>(place_of(n).ranges)}, dim, y);
      if (spec.output_gate) sigmoid_gate_row(cpu::row(q, n) + h * q_stride + dim, dim, y);
    }
  });
  return std::move(out).done();
}

}  // namespace foresay
