#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/every_isa.h"

namespace foresay {
namespace {

constexpr int kBlock = 64;
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

  [[nodiscard]] std::vector<float> attend_to(int positions, float scale) const {
    std::vector<KvBlock> blocks;
    for (int from = 0; from < positions; from += kBlock) {
      blocks.push_back(
          {keys_.data() + from * key_dim_, values_.data() + from * value_dim_, std::min(kBlock, positions - from)});
    }
    std::vector<float> scratch(kBlock), out(static_cast<std::size_t>(value_dim_), -7.0f);
    attend(query_.data(), blocks, key_dim_, value_dim_, scale, scratch.data(), out.data());
    return out;
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
  fill(33, 17);
  for (const int positions : {1, 63, 64, 65, kPositions}) {
    const auto expected = on_reference([&] { return attend_to(positions, 0.5f); });
    EXPECT_EQ(bits_of(attend_to(positions, 0.5f)), bits_of(expected));
  }
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
