#include "kernels/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/every_isa.h"

namespace foresay {
namespace {

constexpr int kPositions = 200;

class Attend : public EveryIsa {
 protected:
  /// Keys and values of `kPositions` positions, and a query.
  void fill(int key_dim, int value_dim, float key_scale = 1) {
    key_dim_ = key_dim;
    value_dim_ = value_dim;
    query_ = random_floats(static_cast<std::size_t>(key_dim), 1);
    keys_ = random_floats(static_cast<std::size_t>(kPositions * key_dim), 2, key_scale);
    values_ = random_floats(static_cast<std::size_t>(kPositions * value_dim), 3);
  }

  /// Ranges end at the positions in `cuts`; the last one takes the rest.
  [[nodiscard]] std::vector<float> attend_to(int positions, float scale, std::vector<int> cuts = {}) const {
    return attend_together(1, positions, scale, std::move(cuts));
  }

  /// The same query, twice the query, ... for `queries` of them, one after another.
  [[nodiscard]] std::vector<float> attend_together(
      int queries, int positions, float scale, std::vector<int> cuts = {}) const {
    std::vector<std::vector<float>> q;
    std::vector<const float*> pointers;
    for (int i = 0; i < queries; ++i) {
      q.push_back(query_);
      for (float& value : q.back()) value *= static_cast<float>(i + 1);
    }
    for (const auto& each : q) pointers.push_back(each.data());
    std::erase_if(cuts, [&](int cut) { return cut >= positions; });
    cuts.push_back(positions);
    std::vector<std::vector<SoftmaxState>> parts(q.size());
    std::vector<std::vector<float>> sums;  // outputs of the parts
    sums.reserve(cuts.size() * q.size());
    int from = 0;
    for (const int to : cuts) {
      std::vector<KvBlock> blocks;
      for (; from < to; from += kMostKeys) blocks.push_back(block(from, std::min(kMostKeys, to - from)));
      from = to;
      std::vector<SoftmaxState> states(q.size());
      for (SoftmaxState& state : states) {
        state.out = sums.emplace_back(static_cast<std::size_t>(value_dim_), -7.0f).data();
      }
      attend(pointers.data(), queries, blocks, type_, key_dim_, value_dim_, scale, states.data());
      for (std::size_t i = 0; i < q.size(); ++i) parts[i].push_back(states[i]);
    }
    std::vector<float> out;
    for (const auto& each : parts) {
      std::vector<float> row(static_cast<std::size_t>(value_dim_), -7.0f);
      join_softmax(each, value_dim_, row.data());
      out.insert(out.end(), row.begin(), row.end());
    }
    return out;
  }

  [[nodiscard]] KvBlock block(int from, int count) const {
    if (type_ == KvType::f32) return {keys_.data() + from * key_dim_, values_.data() + from * value_dim_, count};
    return {half_keys_.data() + from * key_dim_, half_values_.data() + from * value_dim_, count};
  }

  /// Goes over to bf16; the floats become what that holds.
  void halve() {
    type_ = KvType::bf16;
    for (auto [floats, halves] : {std::pair{&keys_, &half_keys_}, {&values_, &half_values_}}) {
      halves->resize(floats->size());
      store_kv(floats->data(), static_cast<int>(floats->size()), type_, halves->data());
      for (std::size_t i = 0; i < floats->size(); ++i) {
        (*floats)[i] = std::bit_cast<float>(static_cast<std::uint32_t>((*halves)[i]) << 16);
      }
    }
  }

  /// Softmax in double, the highest score taken off first.
  [[nodiscard]] std::vector<double> plain(int positions, float scale) const {
    std::vector<double> scores(static_cast<std::size_t>(positions), 0.0);
    for (int t = 0; t < positions; ++t) {
      for (int i = 0; i < key_dim_; ++i) {
        scores[static_cast<std::size_t>(t)] += static_cast<double>(query_[static_cast<std::size_t>(i)]) *
                                               keys_[static_cast<std::size_t>(t * key_dim_ + i)] * scale;
      }
    }
    const double highest = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    std::vector<double> out(static_cast<std::size_t>(value_dim_), 0.0);
    for (int t = 0; t < positions; ++t) {
      const double p = std::exp(scores[static_cast<std::size_t>(t)] - highest);
      total += p;
      for (int d = 0; d < value_dim_; ++d) {
        out[static_cast<std::size_t>(d)] += p * values_[static_cast<std::size_t>(t * value_dim_ + d)];
      }
    }
    for (double& o : out) o /= total;
    return out;
  }

  int key_dim_ = 0, value_dim_ = 0;
  std::vector<float> query_, keys_, values_;
  KvType type_ = KvType::f32;
  std::vector<std::uint16_t> half_keys_, half_values_;
};
FORESAY_EVERY_ISA(Attend);

// Scores reach about 5, and each is off by some 1e-6; so is every weight, relatively. Values are below 1 and 200 of
// them are added: 2e-5 covers both.
TEST_P(Attend, IsASoftmaxAcrossBlockBorders) {
  for (const auto& [key_dim, value_dim] : {std::pair{32, 32}, {17, 33}, {256, 256}, {1, 1}}) {
    fill(key_dim, value_dim);
    for (const int positions : {1, 2, 63, 64, 65, 127, 128, 129, kPositions}) {
      const auto out = attend_to(positions, 0.5f);
      const auto expected = plain(positions, 0.5f);
      for (std::size_t d = 0; d < out.size(); ++d) {
        ASSERT_NEAR(out[d], expected[d], 2e-5) << key_dim << ", " << positions;
      }
    }
  }
}

TEST_P(Attend, BitsAreThoseOfTheReference) {
  for (const bool halved : {false, true}) {
    fill(33, 17);
    if (halved) halve();
    for (const int positions : {1, 63, 64, 65, kPositions}) {
      for (const int queries : {1, 2, 3, 4}) {
        const auto expected = on_reference([&] { return attend_together(queries, positions, 0.5f, {64, 128}); });
        EXPECT_EQ(bits_of(attend_together(queries, positions, 0.5f, {64, 128})), bits_of(expected));
      }
    }
  }
}

TEST_P(Attend, AQueryDoesNotDependOnThoseThatShareTheCall) {
  fill(32, 48);
  const auto alone = attend_to(kPositions, 0.5f);
  for (const int queries : {2, 3, 4}) {
    const auto together = attend_together(queries, kPositions, 0.5f);
    EXPECT_EQ(bits_of({together.begin(), together.begin() + 48}), bits_of(alone)) << queries;
  }
}

TEST_P(Attend, HalvedKeysAndValuesAreASoftmaxOfWhatTheyHold) {
  for (const auto& [key_dim, value_dim] : {std::pair{32, 32}, {17, 33}}) {
    fill(key_dim, value_dim);
    halve();
    const auto out = attend_to(kPositions, 0.5f);
    const auto expected = plain(kPositions, 0.5f);
    for (std::size_t d = 0; d < out.size(); ++d) ASSERT_NEAR(out[d], expected[d], 2e-5) << key_dim;
    type_ = KvType::f32;
    EXPECT_EQ(bits_of(attend_to(kPositions, 0.5f)), bits_of(out));
  }
}

TEST_P(Attend, RangesAreJoinedToTheSoftmaxOfAll) {
  fill(32, 32);
  for (const auto& cuts : std::vector<std::vector<int>>{{64}, {128}, {64, 128}, {64, 128, 192}}) {
    const auto out = attend_to(kPositions, 0.5f, cuts);
    const auto expected = plain(kPositions, 0.5f);
    for (std::size_t d = 0; d < out.size(); ++d) ASSERT_NEAR(out[d], expected[d], 2e-5);
  }
}

TEST_P(Attend, HalvesAreRoundedToNearestEven) {
  const std::vector<float> values = {1.0f, 1.00390625f, 1.01171875f, -1.00390625f, 3.4e38f, 1e-40f, 0.0f, -0.0f, 1.004f,
      INFINITY, -INFINITY, 65504.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.00390625f};
  const std::vector<std::uint16_t> expected = {0x3f80, 0x3f80, 0x3f82, 0xbf80, 0x7f80, 0x0001, 0, 0x8000, 0x3f81,
      0x7f80, 0xff80, 0x4780, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80};
  std::vector<std::uint16_t> halves(values.size());
  store_kv(values.data(), static_cast<int>(values.size()), KvType::bf16, halves.data());
  EXPECT_EQ(halves, expected);
  const float nan = NAN;
  store_kv(&nan, 1, KvType::bf16, halves.data());
  EXPECT_TRUE((halves[0] & 0x7f80) == 0x7f80 && (halves[0] & 0x7f) != 0);
}

TEST_P(Attend, LargeScoresNeitherOverflowNorVanish) {
  fill(16, 8);
  const auto value_row = [this](int t) {
    return std::vector<float>(values_.begin() + t * value_dim_, values_.begin() + (t + 1) * value_dim_);
  };
  // The position that is ahead by thousands takes all, wherever its block is.
  for (const int ahead : {0, 63, 64, 130, kPositions - 1}) {
    for (const float sign : {1.0f, -1.0f}) {
      for (int t = 0; t < kPositions; ++t) {
        for (int i = 0; i < key_dim_; ++i) {
          const float size = sign * (t == ahead ? 1.0f : -1.0f) > 0 ? 3e4f : 1e4f;
          keys_[static_cast<std::size_t>(t * key_dim_ + i)] =
              sign * size * (query_[static_cast<std::size_t>(i)] < 0 ? -1.0f : 1.0f);
        }
      }
      EXPECT_EQ(attend_to(kPositions, 1.0f), value_row(ahead)) << ahead << ", " << sign;
    }
  }
  // All equal and huge: the mean.
  std::fill(keys_.begin(), keys_.end(), 1e30f);
  std::fill(query_.begin(), query_.end(), -1.0f);
  const auto out = attend_to(kPositions, 1.0f);
  for (int d = 0; d < value_dim_; ++d) {
    double mean = 0;
    for (int t = 0; t < kPositions; ++t) mean += values_[static_cast<std::size_t>(t * value_dim_ + d)];
    EXPECT_NEAR(out[static_cast<std::size_t>(d)], mean / kPositions, 2e-5);
  }
}

TEST_P(Attend, WhatLiesBehindTheQueryNeverMatters) {
  fill(33, 17);
  for (const int positions : {1, 63, 64, 65, 130}) {
    const auto expected = bits_of(attend_to(positions, 0.5f));
    const auto keys = keys_, values = values_;
    std::fill(keys_.begin() + positions * key_dim_, keys_.end(), std::numeric_limits<float>::infinity());
    std::fill(values_.begin() + positions * value_dim_, values_.end(), NAN);
    EXPECT_EQ(bits_of(attend_to(positions, 0.5f)), expected);
    keys_ = keys;
    values_ = values;
  }
}

TEST_P(Attend, ABadValueOrScoreShows) {
  fill(32, 8);
  values_[70 * 8 + 3] = NAN;
  const auto out = attend_to(kPositions, 0.5f);
  for (std::size_t d = 0; d < out.size(); ++d) EXPECT_EQ(std::isnan(out[d]), d == 3);
  keys_[0] = NAN;
  for (const float o : attend_to(kPositions, 0.5f)) EXPECT_TRUE(std::isnan(o));
}

}  // namespace
}  // namespace foresay
