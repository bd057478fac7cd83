// model/window_contract.h: what sliding-window attention and its cache promise on every lane, against the definition.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>
#include <string>

#include "fixtures/golden.h"
#include "model/cache_checks.h"
#include "model/cache_layers.h"

namespace foresay {

/// A window on one lane.
struct WindowKind {
  int window;
  std::function<std::unique_ptr<Ops>()> make_ops;
  std::function<std::unique_ptr<AttentionLayer>(Ops&, int window)> make_layer;
  double tolerance;                       ///< between passes of different rows; 0 asks for identical bits
  std::function<int(int appended)> room;  ///< most positions in memory behind appends of up to so many rows
};
inline void PrintTo(const WindowKind& kind, std::ostream* out) {
  *out << "window " << kind.window;
}

/// The operation by its definition, in double: norms, rotation, softmax over the window, gate. Row t of the text
/// `tokens`; AttentionLayer says what a token's rows are.
inline std::vector<double> attention_by_definition(const AttentionLayer& layer, const std::vector<int>& tokens, int t) {
  constexpr int kDim = AttentionLayer::kDim, kHeads = AttentionLayer::kHeads, kKvHeads = AttentionLayer::kKvHeads;
  const AttentionSpec& spec = layer.spec();
  const int parameters[] = {-1};
  const auto normed_and_turned = [&](const float* x, int gain_input, int position) {
    const std::vector<float> gain = token_rows(parameters, kDim, gain_input);
    double squares = 0;
    for (int d = 0; d < kDim; ++d) squares += double{x[d]} * x[d];
    std::vector<double> y(kDim);
    for (int d = 0; d < kDim; ++d) {
      y[static_cast<std::size_t>(d)] =
          x[d] / std::sqrt(squares / kDim + double{spec.norm_eps}) * double{gain[static_cast<std::size_t>(d)]};
    }
    const std::size_t pairs = spec.rope.inv_freq.size();
    for (std::size_t j = 0; j < pairs; ++j) {
      const double angle = position * spec.rope.inv_freq[j], a = y[j], b = y[j + pairs];
      y[j] = a * std::cos(angle) - b * std::sin(angle);
      y[j + pairs] = b * std::cos(angle) + a * std::sin(angle);
    }
    return y;
  };
  const auto row_of = [&](int position, int width, int input) {
    const int token[] = {tokens[static_cast<std::size_t>(position)]};
    return token_rows(token, width, input);
  };
  const std::vector<float> queries = row_of(t, 2 * kHeads * kDim, 0);
  std::vector<double> out;
  for (int h = 0; h < kHeads; ++h) {
    const std::vector<double> q = normed_and_turned(queries.data() + h * 2 * kDim, 8, t);
    const int kv_head = h / (kHeads / kKvHeads);
    double total = 0;
    std::vector<double> mixed(kDim);
    for (int s = 0; s <= t; ++s) {
      if (layer.shape().window > 0 && t - s >= layer.shape().window) continue;
      const std::vector<float> keys = row_of(s, kKvHeads * kDim, 1), values = row_of(s, kKvHeads * kDim, 2);
      const std::vector<double> k = normed_and_turned(keys.data() + kv_head * kDim, 9, s);
      double score = 0;
      for (std::size_t d = 0; d < kDim; ++d) score += q[d] * k[d];
      const double weight = std::exp(score * double{spec.scale});
      total += weight;
      for (std::size_t d = 0; d < kDim; ++d) {
        mixed[d] += weight * double{values[static_cast<std::size_t>(kv_head * kDim) + d]};
      }
    }
    for (std::size_t d = 0; d < kDim; ++d) {
      const double gate = queries[static_cast<std::size_t>(h * 2 * kDim + kDim) + d];
      out.push_back(mixed[d] / total / (1 + std::exp(-gate)));
    }
  }
  return out;
}

class WindowKinds : public ::testing::TestWithParam<WindowKind> {
 protected:
  /// Feeds the tokens in chunks.
  std::vector<float> feed(Cache& cache, const std::vector<int>& tokens, int chunk) {
    std::vector<float> out;
    for (std::size_t t = 0; t < tokens.size(); t += static_cast<std::size_t>(chunk)) {
      const auto end = std::min(tokens.size(), t + static_cast<std::size_t>(chunk));
      const auto rows = layer_->feed(
          cache, {tokens.begin() + static_cast<std::ptrdiff_t>(t), tokens.begin() + static_cast<std::ptrdiff_t>(end)});
      out.insert(out.end(), rows.begin(), rows.end());
    }
    return out;
  }
  std::unique_ptr<Cache> fed(int count) {
    auto cache = layer_->make_cache();
    if (count > 0) (void)feed(*cache, text(0, count), 50);
    return cache;
  }
  void expect_equal(const std::vector<float>& got, const std::vector<float>& want, const std::string& what) {
    if (GetParam().tolerance == 0 || want.empty()) {
      ASSERT_EQ(bits_of(got), bits_of(want)) << what;
    } else {
      ASSERT_LE(max_abs(got, want), GetParam().tolerance) << what;
    }
  }
  /// The same length, contents and future.
  void expect_same(Cache& a, Cache& b, const std::string& what) {
    ASSERT_EQ(a.length(), b.length()) << what;
    expect_equal(layer_->contents(a), layer_->contents(b), what + ", contents");
    const auto next = text(a.length(), 3);
    expect_equal(layer_->feed(a, next), layer_->feed(b, next), what + ", future");
  }
  void expect_definition(const std::vector<float>& rows, const std::vector<int>& tokens, int first) {
    const auto width = static_cast<std::size_t>(layer_->out_width());
    for (std::size_t i = 0; i < rows.size() / width; ++i) {
      const std::vector<double> want = attention_by_definition(*layer_, tokens, first + static_cast<int>(i));
      for (std::size_t d = 0; d < width; ++d) {
        ASSERT_NEAR(double{rows[i * width + d]}, want[d], 2e-6) << "position " << first + static_cast<int>(i);
      }
    }
  }
  /// Bytes of one position.
  static constexpr std::size_t kRow = AttentionLayer::kKvHeads * 2 * AttentionLayer::kDim * sizeof(float);

  const int window_ = GetParam().window;
  std::unique_ptr<Ops> ops_ = GetParam().make_ops();
  std::unique_ptr<AttentionLayer> layer_ = GetParam().make_layer(*ops_, window_);
};

TEST_P(WindowKinds, ARowSeesItselfAndTheRowsBeforeItInTheWindow) {
  const std::vector<int> tokens = text(0, 2 * window_ + 70);  // one append crosses the window and a page
  auto cache = layer_->make_cache();
  expect_definition(layer_->feed(*cache, tokens), tokens, 0);
}

TEST_P(WindowKinds, AnyChunkingGivesTheSame) {
  const std::vector<int> tokens = text(0, 4 * window_ + 3);
  auto whole = layer_->make_cache();
  const std::vector<float> expected = layer_->feed(*whole, tokens);
  for (const int chunk : {1, 3, 5, 8}) {
    auto cache = layer_->make_cache();
    expect_equal(feed(*cache, tokens, chunk), expected, fmt::format("chunks of {}", chunk));
    expect_equal(layer_->contents(*cache), layer_->contents(*whole), fmt::format("chunks of {}, contents", chunk));
  }
}

TEST_P(WindowKinds, SequencesInOnePassDoNotSeeEachOther) {
  const int lengths[] = {0, window_ - 1, window_ + 2, 2 * window_ + 65};
  std::vector<std::unique_ptr<Cache>> together, alone;
  std::vector<CacheSlice> slices;
  std::vector<int> tokens;
  for (const int length : lengths) {
    together.push_back(fed(length));
    alone.push_back(fed(length));
    const auto own = text(length, 4);
    slices.push_back({static_cast<int>(tokens.size()), 4, together.back().get(), false});
    tokens.insert(tokens.end(), own.begin(), own.end());
  }
  const std::vector<float> rows = layer_->feed(slices, tokens);
  std::vector<float> expected;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const auto own = layer_->feed(*alone[i], text(lengths[i], 4));
    expected.insert(expected.end(), own.begin(), own.end());
  }
  expect_equal(rows, expected, "outputs");
  for (std::size_t i = 0; i < alone.size(); ++i) expect_same(*together[i], *alone[i], fmt::format("sequence {}", i));
}

TEST_P(WindowKinds, KeepingRowsEqualsNeverHavingRunTheRest) {
  constexpr int kRows = 9;
  std::vector<int> starts;
  for (const int border : {window_, 2 * window_, 64, 128, 64 + window_, 128 + window_}) {
    for (const int before : {kRows, kRows / 2, 1, 0}) starts.push_back(std::max(0, border - before));
  }
  for (const int start : starts) {
    for (int n = 0; n <= kRows; ++n) {
      const std::string what = fmt::format("{} of {} rows behind {}", n, kRows, start);
      auto cache = fed(start), plain = fed(start);
      auto block = text(start, n);
      for (int i = n; i < kRows; ++i) block.push_back(kWrong + i);
      auto rows = layer_->feed(*cache, block, /*provisional=*/true);
      cache->keep(n);
      rows.resize(static_cast<std::size_t>(n * layer_->out_width()));
      if (n > 0) expect_equal(rows, layer_->feed(*plain, text(start, n)), what);
      expect_same(*cache, *plain, what);
    }
  }
}

// What a chunk of a prompt appends can be taken back whole, however far it runs past the window.
TEST_P(WindowKinds, KeepingFewRowsOfALongAppendIsExact) {
  for (const int n : {0, 1, window_, window_ + 70}) {
    auto cache = fed(2 * window_ + 40), plain = fed(2 * window_ + 40);
    const int start = cache->length();
    auto block = text(start, n);
    for (int i = 0; i < 3 * window_ + 200; ++i) block.push_back(kWrong + i);
    (void)layer_->feed(*cache, block, /*provisional=*/true);
    cache->keep(n);
    if (n > 0) (void)layer_->feed(*plain, text(start, n));
    expect_same(*cache, *plain, fmt::format("{} rows", n));
  }
}

TEST_P(WindowKinds, MemoryStaysBoundedOver64Windows) {
  auto cache = layer_->make_cache();
  for (int t = 0; t < 64 * window_; t += 4) {
    (void)layer_->feed(*cache, text(t, 4), /*provisional=*/true);
    cache->keep(4);
    ASSERT_LE(cache->bytes(), kRow * static_cast<std::size_t>(GetParam().room(4))) << "length " << t + 4;
  }
  (void)layer_->feed(*cache, text(cache->length(), 300));
  EXPECT_LE(cache->bytes(), kRow * static_cast<std::size_t>(GetParam().room(300)));
}

TEST_P(WindowKinds, RowsUpTo64BackCanBeDropped) {
  for (const int length : {window_ + 64, 2 * window_ + 129, 4 * window_ + 200}) {
    for (const int back : {1, 2, 63, 64}) {
      auto cache = fed(length);
      ASSERT_TRUE(cache->can_truncate(length - back)) << length << ", " << back;
      cache->truncate(length - back);
      expect_same(*cache, *fed(length - back), fmt::format("{} back from {}", back, length));
    }
  }
}

TEST_P(WindowKinds, GoingBackToRowsThatAreGoneIsRefusedAndChangesNothing) {
  auto cache = fed(6 * window_ + 600);
  const int length = cache->length();
  for (const int target : {1, window_ + 1, length / 2 - window_}) {
    EXPECT_FALSE(cache->can_truncate(target)) << target;
    expect_internal([&] { cache->truncate(target); });
  }
  expect_same(*cache, *fed(length), "after refusals");
  ASSERT_TRUE(cache->can_truncate(0));  // nothing is needed to begin again
  cache->truncate(0);
  EXPECT_EQ(cache->bytes(), 0u);
  expect_same(*cache, *fed(0), "begun again");
}

TEST_P(WindowKinds, ASnapshotKeepsWhatTheCacheHasLeftBehind) {
  const int length = 2 * window_ + 70;
  auto cache = fed(length);
  const auto snapshot = cache->snapshot();
  (void)feed(*cache, text(kWrong, 3 * window_ + 300), 60);
  cache->restore(*snapshot);
  expect_same(*cache, *fed(length), "restored");
  auto other = layer_->make_cache();
  other->restore(*snapshot);
  expect_same(*other, *fed(length), "elsewhere");
}

}  // namespace foresay
