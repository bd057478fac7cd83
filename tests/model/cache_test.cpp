#include "model/cache/cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <string>

#include "base/error.h"
#include "model/cache_layers.h"

namespace foresay {
namespace {

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

/// Tokens first, first + 1, ...: the text that counts. Above kWrong lie drafts that do not.
constexpr int kWrong = 1'000'000;
std::vector<int> text(int first, int count) {
  std::vector<int> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(first + i);
  return tokens;
}

void expect_internal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal) << error.what();
    return;
  }
  ADD_FAILURE() << "no error";
}

class CacheKinds : public ::testing::TestWithParam<std::string> {
 protected:
  CacheKinds() : layer_(make_layer()) {}

  std::unique_ptr<CacheLayer> make_layer() {
    if (GetParam() == "attention") return std::make_unique<AttentionLayer>(*ops_);
    return std::make_unique<GatedDeltaLayer>(*ops_);
  }
  std::unique_ptr<Cache> fed(int count) {
    auto cache = layer_->make_cache();
    if (count > 0) layer_->feed(*cache, text(0, count));
    return cache;
  }
  /// A cache that was fed the text one token at a time, and everything it gave.
  void feed_one_by_one(Cache& cache, int count, std::vector<float>& out) {
    for (int t = 0; t < count; ++t) append(out, layer_->feed(cache, text(t, 1)));
  }
  static void append(std::vector<float>& to, const std::vector<float>& from) {
    to.insert(to.end(), from.begin(), from.end());
  }
  /// The same length, contents and future.
  void expect_same(Cache& a, Cache& b) {
    ASSERT_EQ(a.length(), b.length());
    EXPECT_EQ(bits_of(layer_->contents(a)), bits_of(layer_->contents(b)));
    const auto next = text(a.length(), 3);
    EXPECT_EQ(bits_of(layer_->feed(a, next)), bits_of(layer_->feed(b, next)));
  }

  std::unique_ptr<Ops> ops_ = make_cpu_ops(2);
  std::unique_ptr<CacheLayer> layer_;
};
INSTANTIATE_TEST_SUITE_P(
    Model, CacheKinds, ::testing::Values("attention", "gated_delta"), [](const auto& kind) { return kind.param; });

TEST_P(CacheKinds, AnyChunkingOfThePromptGivesTheSameBits) {
  auto cold = layer_->make_cache();
  std::vector<float> expected;
  feed_one_by_one(*cold, 140, expected);
  for (const int chunk : {2, 3, 7, 63, 64, 65, 140}) {
    auto cache = layer_->make_cache();
    std::vector<float> out;
    for (int t = 0; t < 140; t += chunk) append(out, layer_->feed(*cache, text(t, std::min(chunk, 140 - t))));
    EXPECT_EQ(bits_of(out), bits_of(expected)) << chunk;
    EXPECT_EQ(bits_of(layer_->contents(*cache)), bits_of(layer_->contents(*cold))) << chunk;
  }
}

// A round drafts k tokens behind one that counts; keep(n) drops the rest, and the next round starts there.
TEST_P(CacheKinds, KeepingSomeDraftedRowsEqualsNeverHavingSeenTheOthers) {
  for (int k = 0; k <= 8; ++k) {
    for (int keep = 0; keep <= k + 1; ++keep) {
      auto cache = layer_->make_cache();
      std::vector<float> out, expected;
      int length = 0;
      for (int round = 0; round < 12; ++round) {
        auto block = text(length, keep);
        for (int i = keep; i <= k; ++i) block.push_back(kWrong + round * 16 + i);
        auto rows = layer_->feed(*cache, block, /*provisional=*/true);
        ASSERT_EQ(cache->length(), length + k + 1);
        cache->keep(keep);
        length += keep;
        ASSERT_EQ(cache->length(), length);
        rows.resize(static_cast<std::size_t>(keep * layer_->out_width()));
        append(out, rows);
        if (round == 6) {  // plain decoding in between
          append(out, layer_->feed(*cache, text(length, 2)));
          length += 2;
        }
      }
      auto plain = layer_->make_cache();
      feed_one_by_one(*plain, length, expected);
      ASSERT_EQ(bits_of(out), bits_of(expected)) << "k " << k << ", keep " << keep;
      expect_same(*cache, *plain);
    }
  }
}

TEST_P(CacheKinds, ManyRoundsOfChangingDepthEqualPlainDecoding) {
  auto cache = layer_->make_cache(), plain = layer_->make_cache();
  std::vector<float> out, expected;
  append(out, layer_->feed(*cache, text(0, 50)));
  int length = 50;
  std::mt19937 words(1);
  for (int round = 0; round < 60; ++round) {
    const int rows = 1 + static_cast<int>(words() % 9),
              keep = static_cast<int>(words() % static_cast<unsigned>(rows + 1));
    auto block = text(length, keep);
    for (int i = keep; i < rows; ++i) block.push_back(kWrong + round * 16 + i);
    auto given = layer_->feed(*cache, block, /*provisional=*/true);
    cache->keep(keep);
    given.resize(static_cast<std::size_t>(keep * layer_->out_width()));
    append(out, given);
    length += keep;
  }
  ASSERT_GT(length, 2 * PagedKvCache::kPage);
  feed_one_by_one(*plain, length, expected);
  EXPECT_EQ(bits_of(out), bits_of(expected));
  expect_same(*cache, *plain);
}

TEST_P(CacheKinds, RowsCannotFollowOnesThatWaitForKeep) {
  auto cache = fed(5);
  layer_->feed(*cache, text(5, 3), /*provisional=*/true);
  expect_internal([&] { layer_->feed(*cache, text(8, 1)); });
  expect_internal([&] { layer_->feed(*cache, text(8, 2), /*provisional=*/true); });
  expect_internal([&] { (void)cache->snapshot(); });
  EXPECT_EQ(cache->length(), 8);
  cache->keep(2);
  expect_same(*cache, *fed(7));
}

TEST_P(CacheKinds, KeepOutOfRangeThrowsAndChangesNothing) {
  auto cache = fed(5);
  layer_->feed(*cache, text(5, 3), /*provisional=*/true);
  expect_internal([&] { cache->keep(-1); });
  expect_internal([&] { cache->keep(4); });
  EXPECT_EQ(cache->length(), 8);
  cache->keep(3);
  expect_internal([&] { cache->keep(1); });  // nothing waits any more
  expect_same(*cache, *fed(8));
}

TEST_P(CacheKinds, TruncateOutOfRangeThrowsAndChangesNothing) {
  auto cache = fed(70);
  expect_internal([&] { cache->truncate(71); });
  expect_internal([&] { cache->truncate(-1); });
  cache->truncate(70);
  expect_same(*cache, *fed(70));
}

TEST_P(CacheKinds, ASnapshotStaysWhileTheOriginalGoesOn) {
  for (const int length : {0, 1, 50, 63, 64, 65, 128}) {
    auto cache = fed(length);
    const auto snapshot = cache->snapshot();
    layer_->feed(*cache, {kWrong, kWrong + 1}, /*provisional=*/true);
    cache->keep(1);
    layer_->feed(*cache, text(kWrong + 2, 80));
    auto restored = layer_->make_cache();
    restored->restore(*snapshot);
    expect_same(*restored, *fed(length));  // also feeds `restored`, which must not reach the snapshot either
    auto again = layer_->make_cache();
    again->restore(*snapshot);
    expect_same(*again, *fed(length));
  }
}

TEST_P(CacheKinds, ASnapshotOutlivesItsCache) {
  auto cache = fed(70);
  const auto snapshot = cache->snapshot();
  cache.reset();
  auto restored = layer_->make_cache();
  restored->restore(*snapshot);
  expect_same(*restored, *fed(70));
}

TEST_P(CacheKinds, TakingASnapshotChangesNothing) {
  auto cache = fed(50);
  layer_->feed(*cache, text(50, 4), /*provisional=*/true);
  cache->keep(2);
  (void)cache->snapshot();
  (void)cache->snapshot();
  expect_same(*cache, *fed(52));
}

TEST_P(CacheKinds, RestoringDropsWhatCameAfterDraftsIncluded) {
  auto cache = fed(50);
  const auto snapshot = cache->snapshot();
  layer_->feed(*cache, text(kWrong, 30));
  layer_->feed(*cache, text(kWrong + 30, 4), /*provisional=*/true);
  cache->restore(*snapshot);
  expect_same(*cache, *fed(50));

  layer_->feed(*cache, text(kWrong, 4), /*provisional=*/true);
  cache->keep(3);  // kept, not yet in the state
  cache->restore(*snapshot);
  expect_same(*cache, *fed(50));
}

// ---- attention

class KvCache : public ::testing::Test {
 protected:
  std::vector<float> contents() { return layer_.contents(cache()); }
  PagedKvCache& cache() { return static_cast<PagedKvCache&>(*cache_); }

  std::unique_ptr<Ops> ops_ = make_cpu_ops(1);
  AttentionLayer layer_{*ops_};
  std::unique_ptr<Cache> cache_ = layer_.make_cache();
  std::size_t page_bytes_ = PagedKvCache::kPage * AttentionLayer::kKvHeads * 2 * AttentionLayer::kDim * sizeof(float);
};

TEST_F(KvCache, TruncatingEqualsNeverHavingGoneOn) {
  for (const int length : {0, 1, 63, 64, 65, 130}) {
    cache_ = layer_.make_cache();
    layer_.feed(*cache_, text(0, length));
    const auto expected = contents();
    layer_.feed(*cache_, text(kWrong, 150));
    cache_->truncate(length);
    EXPECT_EQ(bits_of(contents()), bits_of(expected));
    auto cold = layer_.make_cache();
    layer_.feed(*cold, text(0, length));
    EXPECT_EQ(bits_of(layer_.feed(*cache_, text(length, 70))), bits_of(layer_.feed(*cold, text(length, 70))));
  }
}

TEST_F(KvCache, BytesFollowTheLength) {
  EXPECT_EQ(cache_->bytes(), 0u);
  layer_.feed(*cache_, text(0, 1));
  EXPECT_EQ(cache_->bytes(), page_bytes_);
  layer_.feed(*cache_, text(1, 63));
  EXPECT_EQ(cache_->bytes(), page_bytes_);
  layer_.feed(*cache_, text(64, 9), /*provisional=*/true);
  EXPECT_EQ(cache_->bytes(), 2 * page_bytes_);
  cache_->keep(0);
  EXPECT_EQ(cache_->bytes(), page_bytes_);
  cache_->truncate(0);
  EXPECT_EQ(cache_->bytes(), 0u);
}

TEST_F(KvCache, FullPagesAreSharedAndTheLastOneIsCopiedByWhoeverWrites) {
  layer_.feed(*cache_, text(0, 70));
  const auto snapshot = cache_->snapshot();
  auto borrower = layer_.make_cache();
  borrower->restore(*snapshot);
  auto& other = static_cast<PagedKvCache&>(*borrower);
  EXPECT_EQ(other.pages(), cache().pages());
  layer_.feed(other, text(kWrong, 1));
  EXPECT_EQ(other.pages()[0], cache().pages()[0]);
  EXPECT_NE(other.pages()[1], cache().pages()[1]);
  EXPECT_EQ(cache_->length(), 70);
  auto cold = layer_.make_cache();
  layer_.feed(*cold, text(0, 70));
  EXPECT_EQ(bits_of(contents()), bits_of(layer_.contents(*cold)));
}

TEST_F(KvCache, GoingBackIntoASharedFullPageCopiesItBeforeWriting) {
  layer_.feed(*cache_, text(0, 130));
  const auto before = contents();
  const auto snapshot = cache_->snapshot();
  cache_->truncate(30);
  layer_.feed(*cache_, text(kWrong, 100));
  cache_->restore(*snapshot);
  EXPECT_EQ(bits_of(contents()), bits_of(before));
}

TEST_F(KvCache, FillingWithoutAQueryStoresTheSameRows) {
  layer_.feed(*cache_, text(0, 70));
  auto filled = layer_.make_cache();
  layer_.fill(*filled, text(0, 70));
  EXPECT_EQ(bits_of(layer_.contents(*filled)), bits_of(contents()));
}

// ---- gated delta

class StateCache : public ::testing::Test {
 protected:
  std::unique_ptr<Ops> ops_ = make_cpu_ops(1);
  GatedDeltaLayer layer_{*ops_};
  std::unique_ptr<Cache> cache_ = layer_.make_cache();
};

TEST_F(StateCache, RowsInTheStateCannotBeTakenBack) {
  layer_.feed(*cache_, text(0, 5));
  expect_internal([&] { cache_->truncate(4); });
  expect_internal([&] { cache_->truncate(0); });
  expect_internal([&] { cache_->keep(4); });
  cache_->keep(5);  // all of them: nothing to take back
  layer_.feed(*cache_, text(5, 3), /*provisional=*/true);
  expect_internal([&] { cache_->truncate(7); });  // drafted rows go by keep() alone
  expect_internal([&] { cache_->truncate(8); });
  cache_->keep(2);
  expect_internal([&] { cache_->truncate(6); });
  EXPECT_EQ(cache_->length(), 7);

  auto cold = layer_.make_cache();
  layer_.feed(*cold, text(0, 7));
  EXPECT_EQ(bits_of(layer_.contents(*cache_)), bits_of(layer_.contents(*cold)));
}

TEST_F(StateCache, WithoutDraftingThereIsNoMemoryForIt) {  // B88
  const std::size_t fresh = cache_->bytes();
  const RecurrentShape& s = GatedDeltaLayer::kShape;
  EXPECT_EQ(
      fresh, sizeof(float) * static_cast<std::size_t>(3 * s.conv_channels + s.value_heads * s.value_dim * s.key_dim));
  layer_.feed(*cache_, text(0, 300));
  for (int t = 300; t < 310; ++t) layer_.feed(*cache_, text(t, 1));
  (void)cache_->snapshot();
  EXPECT_EQ(cache_->bytes(), fresh);

  layer_.feed(*cache_, text(310, 4), /*provisional=*/true);
  const std::size_t row =
      static_cast<std::size_t>(s.conv_channels + s.key_heads * s.key_dim + s.value_heads * s.value_dim + s.value_heads);
  EXPECT_EQ(cache_->bytes(), fresh + 4 * row * sizeof(float));
  cache_->keep(1);
  layer_.feed(*cache_, text(311, 2), /*provisional=*/true);
  EXPECT_EQ(cache_->bytes(), fresh + 2 * row * sizeof(float));
}

// ---- all layers of a sequence

class LayersTogether : public ::testing::Test {
 protected:
  CacheSet make_set() {
    std::vector<std::unique_ptr<Cache>> layers;
    layers.push_back(recurrent_.make_cache());
    layers.push_back(attention_.make_cache());
    return CacheSet(std::move(layers));
  }
  void feed(CacheSet& set, const std::vector<int>& tokens, bool provisional = false) {
    recurrent_.feed(set.layer(0), tokens, provisional);
    attention_.feed(set.layer(1), tokens, provisional);
  }
  void expect_text(CacheSet& set, int length) {
    auto cold = make_set();
    feed(cold, text(0, length));
    EXPECT_EQ(set.length(), length);
    EXPECT_EQ(bits_of(recurrent_.contents(set.layer(0))), bits_of(recurrent_.contents(cold.layer(0))));
    EXPECT_EQ(bits_of(attention_.contents(set.layer(1))), bits_of(attention_.contents(cold.layer(1))));
  }

  std::unique_ptr<Ops> ops_ = make_cpu_ops(1);
  GatedDeltaLayer recurrent_{*ops_};
  AttentionLayer attention_{*ops_};
};

TEST_F(LayersTogether, AreKeptSnapshottedAndRestoredTogether) {
  auto set = make_set();
  const std::size_t fresh = set.bytes();
  EXPECT_EQ(set.length(), 0);
  feed(set, text(0, 60));
  const auto snapshot = set.snapshot();
  feed(set, {60, 61, kWrong, kWrong + 1}, /*provisional=*/true);
  EXPECT_EQ(set.length(), 64);
  set.keep(2);
  expect_text(set, 62);
  feed(set, text(62, 10));
  EXPECT_GT(set.bytes(), fresh);
  set.restore(snapshot);
  expect_text(set, 60);
  auto other = make_set();
  other.restore(snapshot);
  feed(other, text(60, 10));
  expect_text(other, 70);
  expect_text(set, 60);
}

TEST_F(LayersTogether, ASetOfAttentionLayersIsTruncatedTogether) {
  std::vector<std::unique_ptr<Cache>> layers;
  layers.push_back(attention_.make_cache());
  layers.push_back(attention_.make_cache());
  CacheSet set(std::move(layers));
  for (int i = 0; i < 2; ++i) attention_.feed(set.layer(i), text(0, 70));
  set.truncate(33);
  EXPECT_EQ(set.length(), 33);
  EXPECT_EQ(set.layer(1).length(), 33);
  EXPECT_EQ(CacheSet({}).length(), 0);
}

TEST_F(LayersTogether, ARecurrentLayerRefusesToTruncate) {
  auto set = make_set();
  feed(set, text(0, 10));
  expect_internal([&] { set.truncate(9); });
  expect_text(set, 10);
}

}  // namespace
}  // namespace foresay
