// model/cache_contract.h: what every cache promises on every lane (model/cache/cache.h), as a suite that is
// instantiated once per lane.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>

#include "fixtures/golden.h"
#include "model/cache_checks.h"
#include "model/cache_layers.h"

namespace foresay {

/// One kind of cache on one lane.
struct CacheKind {
  std::string name;
  std::function<std::unique_ptr<Ops>()> make_ops;
  std::function<std::unique_ptr<CacheLayer>(Ops&)> make_layer;
  int border;        ///< positions that memory is made for at once
  double tolerance;  ///< between passes of different rows; 0 asks for identical bits
};
inline void PrintTo(const CacheKind& kind, std::ostream* out) {
  *out << kind.name;
}

class CacheKinds : public ::testing::TestWithParam<CacheKind> {
 protected:
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
  /// The same values up to what the lane promises.
  void expect_equal(const std::vector<float>& got, const std::vector<float>& want, const std::string& what = "") {
    if (GetParam().tolerance == 0 || want.empty()) {
      EXPECT_EQ(bits_of(got), bits_of(want)) << what;
    } else {
      EXPECT_LE(max_abs(got, want), GetParam().tolerance) << what;
    }
  }
  /// The same length, contents and future.
  void expect_same(Cache& a, Cache& b) {
    ASSERT_EQ(a.length(), b.length());
    expect_equal(layer_->contents(a), layer_->contents(b), "contents");
    const auto next = text(a.length(), 3);
    expect_equal(layer_->feed(a, next), layer_->feed(b, next), "future");
  }

  const int border_ = GetParam().border;
  std::unique_ptr<Ops> ops_ = GetParam().make_ops();
  std::unique_ptr<CacheLayer> layer_ = GetParam().make_layer(*ops_);
};

TEST_P(CacheKinds, AnyChunkingOfThePromptGivesTheSame) {
  auto cold = layer_->make_cache();
  std::vector<float> expected;
  const int length = 2 * border_ + 12;
  feed_one_by_one(*cold, length, expected);
  for (const int chunk : {2, 3, 7, border_ - 1, border_, border_ + 1, length}) {
    auto cache = layer_->make_cache();
    std::vector<float> out;
    for (int t = 0; t < length; t += chunk) append(out, layer_->feed(*cache, text(t, std::min(chunk, length - t))));
    expect_equal(out, expected, std::to_string(chunk));
    expect_equal(layer_->contents(*cache), layer_->contents(*cold), std::to_string(chunk));
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
      expect_equal(out, expected, "k " + std::to_string(k) + ", keep " + std::to_string(keep));
      expect_same(*cache, *plain);
    }
  }
}

// The same calls with other drafts: whatever was rejected, the bits are the same, on every lane.
TEST_P(CacheKinds, RejectedRowsLeaveNoTrace) {
  std::vector<float> outs[2];
  std::unique_ptr<Cache> caches[2];
  for (const int other : {0, 1}) {
    caches[other] = fed(border_ - 6);
    for (int round = 0; round < 5; ++round) {
      auto block = text(caches[other]->length(), 2);
      for (int i = 0; i < 3; ++i) block.push_back(kWrong * (1 + other) + round * 16 + i);
      auto rows = layer_->feed(*caches[other], block, /*provisional=*/true);
      caches[other]->keep(2);
      rows.resize(static_cast<std::size_t>(2 * layer_->out_width()));
      append(outs[other], rows);
    }
    append(outs[other], layer_->contents(*caches[other]));
  }
  EXPECT_EQ(bits_of(outs[0]), bits_of(outs[1]));
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
  ASSERT_GT(length, 128);
  feed_one_by_one(*plain, length, expected);
  expect_equal(out, expected);
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
  for (const int length : {0, 1, 50, border_ - 1, border_, border_ + 1, 2 * border_}) {
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

}  // namespace foresay
