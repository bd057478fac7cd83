// The contract of caches on the CPU lane, and what is its own: pages, tape, identical bits.
#include "model/cache_contract.h"

namespace foresay {
namespace {

template <typename Layer>
CacheKind on_cpu(const std::string& name) {
  return {name, [] { return make_cpu_ops(2); }, [](Ops& ops) { return std::make_unique<Layer>(ops); },
      PagedKvCache::kPage, /*tolerance=*/0};
}
CacheKind window_on_cpu(int window) {
  return {fmt::format("window_{}", window), [] { return make_cpu_ops(2); },
      [window](Ops& ops) { return std::make_unique<AttentionLayer>(ops, window); }, PagedKvCache::kPage,
      /*tolerance=*/0};
}
INSTANTIATE_TEST_SUITE_P(Cpu, CacheKinds,
    ::testing::Values(on_cpu<AttentionLayer>("attention"), on_cpu<GatedDeltaLayer>("gated_delta"), window_on_cpu(9),
        window_on_cpu(64), window_on_cpu(100)),
    [](const auto& kind) { return kind.param.name; });

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
