// kernels/attention.h: one query against a paged cache, softmax accumulated page by page.
#pragma once

#include <span>

namespace foresay {

/// Keys and values of one KV head within one page.
struct KvBlock {
  const float* keys = nullptr;    ///< [count, key_dim]
  const float* values = nullptr;  ///< [count, value_dim]
  int count = 0;                  ///< positions the query may see
};

/// out = softmax(q k^T * scale) v over all blocks, float32. Blocks are reduced in order, each with its own maximum, so
/// the sums of a query depend on nothing but its own position.
///   q        [key_dim]
///   scratch  floats for the scores of the longest block
///   out      [value_dim]
void attend(const float* q, std::span<const KvBlock> blocks, int key_dim, int value_dim, float scale, float* scratch,
    float* out);

}  // namespace foresay
