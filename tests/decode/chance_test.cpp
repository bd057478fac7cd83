#include "decode/sample/chance.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/error.h"
#include "decode/chi_square.h"
#include "decode/sample/shape.h"

namespace foresay {
namespace {

/// Gumbel-max over every id.
TokenId draw_unpruned(const KeyedNoise& noise, const Distribution& d, std::uint32_t index, Purpose purpose) {
  TokenId winner = -1;
  double best = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < d.ids().size(); ++i) {
    const double score = std::log(d.p()[i]) + noise.gumbel(index, purpose, d.ids()[i]);
    if (score > best) {
      best = score;
      winner = d.ids()[i];
    }
  }
  return winner;
}

Distribution random_distribution(std::mt19937& random, std::size_t n, double spread) {
  std::normal_distribution<float> normal(0, static_cast<float>(spread));
  std::vector<float> logits(n);
  for (float& logit : logits) logit = normal(random);
  SamplingOptions options{.temperature = 1};
  if (random() % 2) options.top_k = 1 + static_cast<int>(random() % n);  // ids with holes
  return shape(std::move(logits), options);
}

TEST(KeyedChance, PruningNeverChangesADraw) {
  std::mt19937 random(21);
  for (const std::size_t n : {1u, 2u, 3u, 4u, 5u, 8u, 63u, 2000u}) {
    for (const double spread : {0.0, 0.01, 1.0, 4.0, 10.0}) {
      for (int round = 0; round < 40; ++round) {
        const auto d = random_distribution(random, n, spread);
        const KeyedNoise noise(random(), 3);
        KeyedChance chance(noise);
        const std::uint32_t index = random() % 1000;
        for (const Purpose purpose : {Purpose::draw, Purpose::draft, Purpose::residual}) {
          ASSERT_EQ(chance.draw(d, index, purpose), draw_unpruned(noise, d, index, purpose)) << n << " " << spread;
        }
      }
    }
  }
}

TEST(KeyedChance, PruningNeverChangesADrawOverALargeVocabulary) {
  std::mt19937 random(22);
  const auto d = random_distribution(random, 248'320, 3.0);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const KeyedNoise noise(seed);
    ASSERT_EQ(KeyedChance(noise).draw(d, 0, Purpose::draw), draw_unpruned(noise, d, 0, Purpose::draw));
  }
}

// Over a row nothing is listed; the draw must be that of the list.
TEST(KeyedChance, ARowIsDrawnFromAsItsListIs) {
  std::mt19937 random(23);
  for (const std::size_t n : {1u, 5u, 63u, 64u, 300u, 5000u}) {
    for (const double temperature : {1e-300, 0.3, 1.0, 30.0, 1e300}) {
      for (int round = 0; round < 20; ++round) {
        std::normal_distribution<float> normal(0, std::array{0.4f, 3.0f}[random() % 2]);
        std::vector<float> row(n);
        for (float& logit : row) logit = random() % 7 == 0 ? -std::numeric_limits<float>::infinity() : normal(random);
        row[random() % n] = 3;
        const auto d = shape(row, {.temperature = temperature});
        ASSERT_NE(d.row(), nullptr);
        KeyedChance chance{KeyedNoise(random())};
        ASSERT_EQ(chance.draw(d, 2, Purpose::draw), chance.draw(d.listed(), 2, Purpose::draw))
            << n << " " << temperature;
      }
    }
  }
}

TEST(KeyedChance, AResidualOfARowIsDrawnFromAsItsListIs) {
  std::mt19937 random(24);
  for (const std::size_t n : {2u, 64u, 700u, 5000u}) {
    for (int round = 0; round < 60; ++round) {
      std::normal_distribution<float> normal(0, 1);
      std::vector<float> target(n), drafter;
      for (float& logit : target) logit = normal(random);
      drafter = target;
      const float moved = std::array{0.0f, 1e-3f, 1.0f}[random() % 3];
      for (float& logit : drafter) logit += moved * normal(random);
      const auto p = shape(target, {.temperature = 1});
      const auto q = shape(drafter, {.temperature = 1, .top_k = random() % 2 ? static_cast<int>(n / 2) : 0});
      const auto left = residual(p, q);
      KeyedChance chance{KeyedNoise(random())};
      ASSERT_EQ(chance.draw(left, 7, Purpose::residual), chance.draw(left.listed(), 7, Purpose::residual)) << n;
      ASSERT_EQ(residual(p.listed(), q).ids(), left.ids());
    }
  }
}

TEST(KeyedChance, DrawsFitTheDistribution) {
  const Distribution d{{0, 1, 2, 3, 4, 5, 6, 7}, {0.4, 0.2, 0.15, 0.1, 0.08, 0.04, 0.02, 0.01}};
  for (const Purpose purpose : {Purpose::draw, Purpose::draft, Purpose::residual}) {
    KeyedChance chance(KeyedNoise(2024));
    std::vector<int> counts(8);
    for (std::uint32_t i = 0; i < 200'000; ++i) ++counts[static_cast<std::size_t>(chance.draw(d, i, purpose))];
    expect_fits(counts, d);
  }
}

TEST(KeyedChance, DrawsFitTheDistributionOverSeedsToo) {
  const Distribution d{{0, 3, 4, 9}, {0.1, 0.2, 0.3, 0.4}};
  std::vector<int> counts(10);
  for (std::uint64_t seed = 0; seed < 100'000; ++seed) {
    ++counts[static_cast<std::size_t>(KeyedChance(KeyedNoise(seed)).draw(d, 5, Purpose::draw))];
  }
  expect_fits(counts, d);
}

// Case B64: top_k 0 was once read as 1.
TEST(KeyedChance, UniformLogitsWithTopKOffReachEveryId) {
  const auto d = shape(std::vector<float>(8, 0.25f), {.temperature = 1, .top_k = 0});
  KeyedChance chance(KeyedNoise(0));
  std::vector<int> counts(8);
  for (std::uint32_t i = 0; i < 200; ++i) ++counts[static_cast<std::size_t>(chance.draw(d, i, Purpose::draw))];
  for (const int count : counts) EXPECT_GT(count, 0);
}

TEST(KeyedChance, OneIdNeedsNoDrawAndNoIdIsAnError) {
  KeyedChance chance(KeyedNoise(0));
  EXPECT_EQ(chance.draw({{17}, {1.0}}, 0, Purpose::draw), 17);
  EXPECT_THROW((void)chance.draw({}, 0, Purpose::draw), Error);
}

TEST(KeyedChance, NeverAndAlwaysAreExact) {
  KeyedChance chance(KeyedNoise(8));
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    ASSERT_FALSE(chance.happens(0, i, Purpose::accept));
    ASSERT_TRUE(chance.happens(1, i, Purpose::accept));
  }
}

TEST(KeyedChance, HappensAsOftenAsAsked) {
  for (const double probability : {0.01, 0.3, 0.9}) {
    KeyedChance chance(KeyedNoise(9));
    std::vector<int> counts(2);
    for (std::uint32_t i = 0; i < 100'000; ++i) ++counts[chance.happens(probability, i, Purpose::accept) ? 1 : 0];
    expect_fits(counts, {{0, 1}, {1 - probability, probability}});
  }
}

}  // namespace
}  // namespace foresay
