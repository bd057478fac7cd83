#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/linear.h"

namespace foresay {

void attend(const float* q, std::span<const KvBlock> blocks, int key_dim, int value_dim, float scale, float* scratch,
    float* out) {
  std::fill(out, out + value_dim, 0.0f);
  float highest = -std::numeric_limits<float>::infinity();
  float total = 0;
  for (const KvBlock& block : blocks) {
    float block_highest = highest;
    dot_rows(block.keys, block.count, q, key_dim, scratch);
    for (int i = 0; i < block.count; ++i) {
      scratch[i] *= scale;
      block_highest = std::max(block_highest, scratch[i]);
    }
    const float shrink = std::exp(highest - block_highest);  // 0 for the first block
    highest = block_highest;
    total *= shrink;
    for (int d = 0; d < value_dim; ++d) out[d] *= shrink;
    for (int i = 0; i < block.count; ++i) {
      const float p = std::exp(scratch[i] - highest);
      const float* v = block.values + static_cast<std::ptrdiff_t>(i) * value_dim;
      total += p;
      for (int d = 0; d < value_dim; ++d) out[d] += p * v[d];
    }
  }
  const float inverse = 1.0f / total;
  for (int d = 0; d < value_dim; ++d) out[d] *= inverse;
}

}  // namespace foresay
