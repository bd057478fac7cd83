// kernels/attention.h: queries against a paged cache, softmax accumulated page by page.
#pragma once

#include <cstdint>
#include <span>

namespace foresay {

/// How keys and values are stored.
enum class KvType { f32, bf16 };

/// Keys and values of one KV head within one page.
struct KvBlock {
  const void* keys = nullptr;    ///< [count, key_dim]
  const void* values = nullptr;  ///< [count, value_dim]
  int count = 0;                 ///< positions the queries may see
};

/// A query's softmax over the positions seen so far: unnormalised output, and what it is relative to.
struct SoftmaxState {
  float highest = 0;     ///< highest score
  float total = 0;       ///< sum of e^(score - highest)
  float* out = nullptr;  ///< [value_dim] sum of e^(score - highest) * value
};

inline constexpr int kMostQueries = 4;  ///< of one call of attend()
inline constexpr int kMostKeys = 64;    ///< of one KvBlock

/// Walks all blocks in order for up to kMostQueries queries that see the same positions (heads of one row that share a
/// KV head), each block with its own maximum; state[i] is overwritten. The sums of a query depend on nothing but its
/// own positions.
///   q      [queries] pointers to [key_dim]
///   scale  multiplies scores
void attend(const float* const* q, int queries, std::span<const KvBlock> blocks, KvType type, int key_dim,
    int value_dim, float scale, SoftmaxState* state);

/// Joins the states of consecutive ranges of positions, in order, and normalises: out [value_dim].
void join_softmax(std::span<const SoftmaxState> parts, int value_dim, float* out);

/// Stores one row as `type`: bf16 is rounded to nearest even.
void store_kv(const float* row, int n, KvType type, void* to);

}  // namespace foresay
