// The contract of caches on the MLX lane, and what is its own: room in steps, shared arrays that nobody writes.
#include "model/cache_contract.h"
#include "model/ops_mlx/kv_cache_mlx.h"
#include "model/ops_mlx/recurrent_cache_mlx.h"
#include "model/window_contract.h"

namespace foresay {
namespace {

std::vector<float> values_of(const std::vector<mx::array>& arrays) {
  std::vector<float> all;
  for (const mx::array& array : arrays) {
    mx::array whole = mx::contiguous(array);
    whole.eval();
    all.insert(all.end(), whole.data<float>(), whole.data<float>() + whole.size());
  }
  return all;
}

class MlxAttentionLayer final : public AttentionLayer {
 public:
  using AttentionLayer::AttentionLayer;
  std::vector<float> contents(Cache& cache) override {
    const auto& kv = static_cast<MlxKvCache&>(cache);
    const int from = shape().first_seen(kv.length());
    return from == kv.length() ? std::vector<float>() : values_of({kv.keys(from), kv.values(from)});
  }
};

class MlxGatedDeltaLayer final : public GatedDeltaLayer {
 public:
  using GatedDeltaLayer::GatedDeltaLayer;
  std::vector<float> contents(Cache& cache) override {
    auto& recurrent = static_cast<MlxRecurrentCache&>(cache);
    recurrent.begin(0);  // moves window and state over the tape
    return values_of({recurrent.window(), recurrent.state()});
  }
};

/// Measured: the largest difference is 0 with the BLAS of the pinned wheel; another one may sum differently.
constexpr double kTolerance = 1e-5;

template <typename Layer>
CacheKind on_mlx_cpu(const std::string& name, int border) {
  return {name, [] { return make_mlx_ops(MlxDevice::cpu); }, [](Ops& ops) { return std::make_unique<Layer>(ops); },
      border, kTolerance};
}
CacheKind window_on_mlx_cpu(int window) {
  return {fmt::format("window_{}", window), [] { return make_mlx_ops(MlxDevice::cpu); },
      [window](Ops& ops) { return std::make_unique<MlxAttentionLayer>(ops, window); }, MlxKvCache::kStep, kTolerance};
}
INSTANTIATE_TEST_SUITE_P(Mlx, CacheKinds,
    ::testing::Values(on_mlx_cpu<MlxAttentionLayer>("attention", MlxKvCache::kStep),
        on_mlx_cpu<MlxGatedDeltaLayer>("gated_delta", 64), window_on_mlx_cpu(9), window_on_mlx_cpu(100)),
    [](const auto& kind) { return kind.param.name; });

/// Room for what can be seen or asked for again and for the rows of the append, in steps, and a step more.
WindowKind windowed(int window) {
  return {window, [] { return make_mlx_ops(MlxDevice::cpu); },
      [](Ops& ops, int its_window) { return std::make_unique<MlxAttentionLayer>(ops, its_window); }, kTolerance,
      [window](int appended) {
        const int needed = window + MlxKvCache::kSlack + appended;
        return (needed + MlxKvCache::kStep - 1) / MlxKvCache::kStep * MlxKvCache::kStep + MlxKvCache::kStep;
      }};
}
INSTANTIATE_TEST_SUITE_P(Mlx, WindowKinds, ::testing::Values(windowed(1), windowed(9), windowed(70)),
    [](const auto& kind) { return fmt::format("window_{}", kind.param.window); });

class MlxKv : public ::testing::Test {
 protected:
  std::unique_ptr<Ops> ops_ = make_mlx_ops(MlxDevice::cpu);
  MlxAttentionLayer layer_{*ops_};
  std::unique_ptr<Cache> cache_ = layer_.make_cache();
  std::size_t step_bytes_ = MlxKvCache::kStep * AttentionLayer::kKvHeads * 2 * AttentionLayer::kDim * sizeof(float);
};

TEST_F(MlxKv, TruncatingEqualsNeverHavingGoneOn) {
  for (const int length : {0, 1, 255, 256, 257}) {
    cache_ = layer_.make_cache();
    if (length > 0) layer_.feed(*cache_, text(0, length));
    const auto expected = layer_.contents(*cache_);
    layer_.feed(*cache_, text(kWrong, 300));
    cache_->truncate(length);
    EXPECT_EQ(bits_of(layer_.contents(*cache_)), bits_of(expected));
    auto cold = layer_.make_cache();
    if (length > 0) layer_.feed(*cold, text(0, length));
    EXPECT_EQ(bits_of(layer_.feed(*cache_, text(length, 70))), bits_of(layer_.feed(*cold, text(length, 70))));
  }
}

TEST_F(MlxKv, BytesAreTheRoomMade) {
  EXPECT_EQ(cache_->bytes(), 0u);
  layer_.feed(*cache_, text(0, 1));
  EXPECT_EQ(cache_->bytes(), step_bytes_);
  layer_.feed(*cache_, text(1, 254));
  layer_.feed(*cache_, text(255, 9), /*provisional=*/true);
  EXPECT_EQ(cache_->bytes(), 2 * step_bytes_);
  cache_->keep(0);
  EXPECT_EQ(cache_->length(), 255);
  cache_->truncate(0);
  EXPECT_EQ(cache_->bytes(), 0u);
}

TEST_F(MlxKv, GoingBackIntoASharedArrayLeavesTheSnapshotAsItIs) {
  layer_.feed(*cache_, text(0, 130));
  const auto before = layer_.contents(*cache_);
  const auto snapshot = cache_->snapshot();
  cache_->truncate(30);
  layer_.feed(*cache_, text(kWrong, 60));
  cache_->restore(*snapshot);
  EXPECT_EQ(bits_of(layer_.contents(*cache_)), bits_of(before));
}

TEST_F(MlxKv, FillingWithoutAQueryStoresTheSameRows) {
  layer_.feed(*cache_, text(0, 70));
  auto filled = layer_.make_cache();
  layer_.fill(*filled, text(0, 70));
  EXPECT_EQ(bits_of(layer_.contents(*filled)), bits_of(layer_.contents(*cache_)));
}

TEST_F(MlxKv, AppendsWriteInPlaceWhereNobodyElseHoldsTheArrays) {
  layer_.feed(*cache_, text(0, 30));
  auto& kv = static_cast<MlxKvCache&>(*cache_);
  const auto buffer = [&] { return kv.arrays().front().data<float>(); };
  const float* before = buffer();
  for (int t = 30; t < 60; ++t) layer_.feed(*cache_, text(t, 1));
  EXPECT_EQ(buffer(), before);
  const auto snapshot = cache_->snapshot();
  layer_.feed(*cache_, text(60, 1));
  EXPECT_NE(buffer(), before);
}

// Room is made for more than the window: else, full of what can still be seen, every append would move all of it.
TEST_F(MlxKv, AWindowMovesItsRowsOnceInAStepOfAppends) {
  for (const int window : {10, 192}) {
    MlxAttentionLayer layer(*ops_, window);
    const auto cache = layer.make_cache();
    layer.feed(*cache, text(0, 300));
    const auto buffer = [&] { return static_cast<MlxKvCache&>(*cache).arrays().front().data<float>(); };
    const float* at = buffer();
    int moves = 0;
    for (int t = 300; t < 300 + 2 * MlxKvCache::kStep; ++t) {
      layer.feed(*cache, text(t, 1));
      moves += buffer() != at ? 1 : 0;
      at = buffer();
    }
    EXPECT_LE(moves, 3) << window;
  }
}

class MlxState : public ::testing::Test {
 protected:
  std::unique_ptr<Ops> ops_ = make_mlx_ops(MlxDevice::cpu);
  MlxGatedDeltaLayer layer_{*ops_};
  std::unique_ptr<Cache> cache_ = layer_.make_cache();
};

TEST_F(MlxState, RowsInTheStateCannotBeTakenBack) {
  layer_.feed(*cache_, text(0, 5));
  expect_internal([&] { cache_->truncate(4); });
  expect_internal([&] { cache_->keep(4); });
  cache_->keep(5);  // all of them: nothing to take back
  layer_.feed(*cache_, text(5, 3), /*provisional=*/true);
  expect_internal([&] { cache_->truncate(7); });  // drafted rows go by keep() alone
  expect_internal([&] { cache_->truncate(8); });
  cache_->keep(2);
  expect_internal([&] { cache_->truncate(6); });
  EXPECT_EQ(cache_->length(), 7);
}

// The pass and the tape do the same arithmetic, so a settled state has the bits of one that advanced at once.
TEST_F(MlxState, SettledRowsHaveTheBitsOfCertainOnes) {
  layer_.feed(*cache_, text(0, 20));
  layer_.feed(*cache_, text(20, 5), /*provisional=*/true);
  cache_->keep(5);
  auto certain = layer_.make_cache();
  layer_.feed(*certain, text(0, 20));
  layer_.feed(*certain, text(20, 5));
  EXPECT_EQ(bits_of(layer_.contents(*cache_)), bits_of(layer_.contents(*certain)));
}

TEST_F(MlxState, WithoutDraftingThereIsNoMemoryForIt) {
  const std::size_t fresh = cache_->bytes();
  const RecurrentShape& s = GatedDeltaLayer::kShape;
  EXPECT_EQ(
      fresh, sizeof(float) * static_cast<std::size_t>(3 * s.conv_channels + s.value_heads * s.value_dim * s.key_dim));
  layer_.feed(*cache_, text(0, 300));
  EXPECT_EQ(cache_->bytes(), fresh);
  layer_.feed(*cache_, text(300, 4), /*provisional=*/true);
  const std::size_t row =
      static_cast<std::size_t>(s.conv_channels + s.key_heads * s.key_dim + s.value_heads * s.value_dim + s.value_heads);
  EXPECT_EQ(cache_->bytes(), fresh + 4 * row * sizeof(float));
  cache_->keep(1);
  layer_.feed(*cache_, text(301, 1));
  EXPECT_EQ(cache_->bytes(), fresh);
}

}  // namespace
}  // namespace foresay
