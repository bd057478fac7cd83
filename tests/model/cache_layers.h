// model/cache_layers.h: one attention and one gated-delta operation, fed token by token, for tests of their caches.
// contents() is the CPU lane's; another lane overrides it.
#pragma once

#include <memory>
#include <random>
#include <span>
#include <vector>

#include "model/cache/paged_kv_cache.h"
#include "model/cache/recurrent_cache.h"
#include "model/ops.h"

namespace foresay {

/// Rows of floats that depend on the token alone, so that the same token is the same row wherever it is fed.
inline std::vector<float> token_rows(std::span<const int> tokens, int width, int input) {
  std::vector<float> rows;
  for (const int token : tokens) {
    std::mt19937 words(static_cast<unsigned>(token * 16 + input));
    for (int i = 0; i < width; ++i) rows.push_back(static_cast<float>(static_cast<std::int32_t>(words())) * 0x1p-31f);
  }
  return rows;
}

/// A layer whose memory is under test.
class CacheLayer {
 public:
  virtual ~CacheLayer() = default;
  [[nodiscard]] virtual std::unique_ptr<Cache> make_cache() = 0;
  /// Appends the tokens and gives their output rows, one after another.
  virtual std::vector<float> feed(Cache& cache, const std::vector<int>& tokens, bool provisional = false) = 0;
  /// Everything the cache holds, as it counts for the tokens to come.
  [[nodiscard]] virtual std::vector<float> contents(Cache& cache) = 0;
  [[nodiscard]] int out_width() const { return out_width_; }

 protected:
  CacheLayer(Ops& ops, int out_width) : ops_(ops), out_width_(out_width) {}
  [[nodiscard]] Tensor input(const std::vector<int>& tokens, int width, int which) {
    return ops_.from_host(static_cast<int>(tokens.size()), width, token_rows(tokens, width, which));
  }
  [[nodiscard]] Vector vector(int size, int which) {
    const int token[] = {-1};
    return ops_.vector(token_rows(token, size, which));
  }
  [[nodiscard]] std::vector<float> read(const Tensor& tensor) {
    const auto values = ops_.read(tensor);
    return {values.begin(), values.end()};
  }

  Ops& ops_;
  int out_width_;
};

class AttentionLayer : public CacheLayer {
 public:
  static constexpr int kHeads = 4, kKvHeads = 2, kDim = 16;

  explicit AttentionLayer(Ops& ops, int window = 0)
      : CacheLayer(ops, kHeads * kDim),
        shape_{.kv_heads = kKvHeads, .key_dim = kDim, .value_dim = kDim, .window = window} {
    spec_.heads = kHeads;
    spec_.kv_heads = kKvHeads;
    spec_.head_dim = kDim;
    spec_.rope.inv_freq = {1.0, 0.1, 0.01};
    spec_.scale = 0.25f;
    spec_.q_norm = vector(kDim, 8);
    spec_.k_norm = vector(kDim, 9);
    spec_.output_gate = true;
  }

  std::unique_ptr<Cache> make_cache() override { return ops_.make_kv_cache(shape_); }

  std::vector<float> feed(Cache& cache, const std::vector<int>& tokens, bool provisional = false) override {
    const CacheSlice slice{0, static_cast<int>(tokens.size()), &cache, provisional};
    return feed({&slice, 1}, tokens);
  }
  /// The same for rows of several sequences.
  std::vector<float> feed(std::span<const CacheSlice> slices, const std::vector<int>& tokens) {
    const std::vector<int> all = row_range(0, static_cast<int>(tokens.size()));
    return read(ops_.attention(spec_, input(tokens, 2 * kHeads * kDim, 0), all, input(tokens, kKvHeads * kDim, 1),
        input(tokens, kKvHeads * kDim, 2), slices));
  }

  /// Fills the cache without a query, as head history does.
  void fill(Cache& cache, const std::vector<int>& tokens) {
    const CacheSlice slice{0, static_cast<int>(tokens.size()), &cache, false};
    (void)ops_.attention(
        spec_, {}, {}, input(tokens, kKvHeads * kDim, 1), input(tokens, kKvHeads * kDim, 2), {&slice, 1});
  }

  std::vector<float> contents(Cache& cache) override {
    auto& pages = static_cast<PagedKvCache&>(cache);
    std::vector<float> all;
    for (int t = shape_.first_seen(pages.length()); t < pages.length(); ++t) {
      for (int h = 0; h < kKvHeads; ++h) {
        const KvBlock block = pages.block(t, h, 1);  // float32: the lane is made with float activations
        for (const void* row : {block.keys, block.values}) {
          all.insert(all.end(), static_cast<const float*>(row), static_cast<const float*>(row) + kDim);
        }
      }
    }
    return all;
  }

  [[nodiscard]] const AttentionSpec& spec() const { return spec_; }
  [[nodiscard]] const KvShape& shape() const { return shape_; }

 private:
  AttentionSpec spec_;
  KvShape shape_;
};

class GatedDeltaLayer : public CacheLayer {
 public:
  static constexpr RecurrentShape kShape = {.conv_channels = 2 * 2 * 16 + 4 * 12,
      .conv_kernel = 4,
      .key_heads = 2,
      .value_heads = 4,
      .key_dim = 16,
      .value_dim = 12};

  explicit GatedDeltaLayer(Ops& ops) : CacheLayer(ops, kShape.value_heads * kShape.value_dim) {
    spec_.shape = kShape;
    spec_.conv = vector(kShape.conv_channels * kShape.conv_kernel, 8);
    spec_.a_log = vector(kShape.value_heads, 9);
    spec_.dt_bias = vector(kShape.value_heads, 10);
    spec_.norm = vector(kShape.value_dim, 11);
  }

  std::unique_ptr<Cache> make_cache() override { return ops_.make_recurrent_cache(kShape); }

  std::vector<float> feed(Cache& cache, const std::vector<int>& tokens, bool provisional = false) override {
    const CacheSlice slice{0, static_cast<int>(tokens.size()), &cache, provisional};
    return read(ops_.gated_delta(spec_, input(tokens, kShape.conv_channels, 0),
        input(tokens, kShape.value_heads * kShape.value_dim, 1), input(tokens, kShape.value_heads, 2),
        input(tokens, kShape.value_heads, 3), {&slice, 1}));
  }

  std::vector<float> contents(Cache& cache) override {
    (void)cache.snapshot();  // moves window and state over the tape
    auto& recurrent = static_cast<RecurrentCache&>(cache);
    std::vector<float> all(recurrent.window(), recurrent.window() + (kShape.conv_kernel - 1) * kShape.conv_channels);
    for (int h = 0; h < kShape.value_heads; ++h) {
      all.insert(all.end(), recurrent.state(h), recurrent.state(h) + kShape.value_dim * kShape.key_dim);
    }
    return all;
  }

 private:
  GatedDeltaSpec spec_;
};

}  // namespace foresay
