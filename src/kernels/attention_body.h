// kernels/attention_body.h: attention.h over Lanes, compiled once per instruction set.
#pragma once

#include <cstring>
#include <limits>

#include "kernels/attention.h"
#include "kernels/linear_body.h"
#include "kernels/row_ops_body.h"

namespace foresay::kernels::FORESAY_LANES {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Turns `count` scores into e^(scale * score - highest), 0 behind them, and brings `state` to the new maximum.
/// Returns what the state's sums were multiplied by.
inline float weigh(float* scores, int count, float scale, SoftmaxState& state) {
  for (int i = count; i % 16 != 0; ++i) scores[i] = 0;
  Lanes most = splat(-kInfinity);
  for (int i = 0; i < count; i += 16) {
    const Lanes s = load(scores + i) * splat(scale);
    store(scores + i, s);
    if (i + 16 <= count) {
      most = max(most, s);
    } else {
      for (int j = i; j < count; ++j) most = max(most, splat(scores[j]));
    }
  }
  const float highest = std::max(state.highest, largest(most));
  const float shrink = exp(state.highest - highest);
  Lanes total = splat(0);
  for (int i = 0; i < count; i += 16) {
    Lanes p = exp(load(scores + i) - splat(highest));
    if (i + 16 > count) p = first_lanes(p, count - i);
    store(scores + i, p);
    total = total + p;
  }
  state.highest = highest;
  state.total = state.total * shrink + sum(total);
  return shrink;
}

/// out = out * shrink + sum of p[i] * values[i], in order of i, for Q queries.
template <int Q, typename Rows>
inline void add_values(
    const float (*p)[kMostKeys], const float* shrink, const Rows& values, int count, int dim, SoftmaxState* state) {
  int d = 0;
  for (; d + 16 <= dim; d += 16) {
    Lanes acc[Q];
    for (int q = 0; q < Q; ++q) acc[q] = load(state[q].out + d) * splat(shrink[q]);
    for (int i = 0; i < count; ++i) {
      const Lanes v = values.at(i, d);
      for (int q = 0; q < Q; ++q) acc[q] = fma(splat(p[q][i]), v, acc[q]);
    }
    for (int q = 0; q < Q; ++q) store(state[q].out + d, acc[q]);
  }
  if (d == dim) return;
  for (int q = 0; q < Q; ++q) {
    Lanes acc = load_part(state[q].out + d, dim - d) * splat(shrink[q]);
    for (int i = 0; i < count; ++i) acc = fma(splat(p[q][i]), values.part(i, d, dim - d), acc);
    store_part(state[q].out + d, acc, dim - d);
  }
}

template <int Q, typename Rows>
inline void attend_block(const float* const* q, const Rows& keys, const Rows& values, int count, int key_dim,
    int value_dim, float scale, SoftmaxState* state) {
  float p[Q][kMostKeys], shrink[Q];
  for (int i = 0; i < Q; ++i) {
    dot_all(q[i], 0, 1, keys, count, key_dim, p[i], 0);
    shrink[i] = weigh(p[i], count, scale, state[i]);
  }
  add_values<Q>(p, shrink, values, count, value_dim, state);
}

template <typename Rows>
inline void attend_block(const float* const* q, int queries, const Rows& keys, const Rows& values, int count,
    int key_dim, int value_dim, float scale, SoftmaxState* state) {
  switch (queries) {
    case 1:
      return attend_block<1>(q, keys, values, count, key_dim, value_dim, scale, state);
    case 2:
      return attend_block<2>(q, keys, values, count, key_dim, value_dim, scale, state);
    case 3:
      return attend_block<3>(q, keys, values, count, key_dim, value_dim, scale, state);
    default:
      return attend_block<4>(q, keys, values, count, key_dim, value_dim, scale, state);
  }
}

inline void attend(const float* const* q, int queries, std::span<const KvBlock> blocks, KvType type, int key_dim,
    int value_dim, float scale, SoftmaxState* state) {
  for (int i = 0; i < queries; ++i) {
    state[i].highest = -kInfinity;
    state[i].total = 0;
    std::memset(state[i].out, 0, static_cast<std::size_t>(value_dim) * sizeof(float));
  }
  for (const KvBlock& block : blocks) {
    if (type == KvType::f32) {
      attend_block(q, queries, FloatRows{static_cast<const float*>(block.keys), key_dim},
          FloatRows{static_cast<const float*>(block.values), value_dim}, block.count, key_dim, value_dim, scale, state);
    } else {
      attend_block(q, queries, Bf16Rows{static_cast<const std::byte*>(block.keys), key_dim},
          Bf16Rows{static_cast<const std::byte*>(block.values), value_dim}, block.count, key_dim, value_dim, scale,
          state);
    }
  }
}

inline void join_softmax(std::span<const SoftmaxState> parts, int value_dim, float* out) {
  float highest = -kInfinity;
  for (const SoftmaxState& part : parts) highest = std::max(highest, part.highest);
  float total = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const float factor = exp(parts[i].highest - highest);
    total = total + parts[i].total * factor;
    for_each_lanes(value_dim, [&](int d, int n) {
      const Lanes before = i == 0 ? splat(0) : load_up_to(out + d, n);
      store_up_to(out + d, before + load_up_to(parts[i].out + d, n) * splat(factor), n);
    });
  }
  const Lanes inverse = splat(1.0f / total);
  for_each_lanes(value_dim, [&](int d, int n) { store_up_to(out + d, load_up_to(out + d, n) * inverse, n); });
}

inline void store_kv(const float* row, int n, KvType type, void* to) {
  if (type == KvType::f32) {
    std::memcpy(to, row, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  auto* halves = static_cast<std::uint16_t*>(to);
  for_each_lanes(n, [&](int i, int count) {
    if (count == 16) {
      store_bf16(halves + i, load(row + i));
    } else {
      std::uint16_t all[16];
      store_bf16(all, load_part(row + i, count));
      std::memcpy(halves + i, all, static_cast<std::size_t>(count) * 2);
    }
  });
}

}  // namespace foresay::kernels::FORESAY_LANES
