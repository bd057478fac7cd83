#include "base/noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>

namespace foresay {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Known answers published with Random123 (kat_vectors, philox4x32-10).
TEST(Philox, GivesThePublishedKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(KeyedNoise, SameKeyGivesTheSameNumberInAnyOrder) {
  const KeyedNoise a(42, 1), b(42, 1);
  const double first = a.uniform(3, Purpose::draw, 7);
  (void)a.uniform(9, Purpose::draft, 1);
  EXPECT_EQ(first, b.uniform(3, Purpose::draw, 7));
  EXPECT_EQ(first, a.uniform(3, Purpose::draw, 7));
}

TEST(KeyedNoise, EveryPartOfTheKeyMatters) {
  std::set<double> seen;
  std::size_t keys = 0;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
    for (const std::uint32_t choice : {0u, 1u}) {
      const KeyedNoise noise(seed, choice);
      for (const std::uint32_t index : {0u, 1u, 2u}) {
        for (const Purpose purpose : {Purpose::draw, Purpose::draft, Purpose::accept, Purpose::residual}) {
          for (TokenId token = 0; token < 9; ++token, ++keys) seen.insert(noise.uniform(index, purpose, token));
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), keys);
}

TEST(KeyedNoise, NeighbouringKeysAreUncorrelated) {
  const KeyedNoise noise(5);
  constexpr int kPairs = 100'000;
  const auto correlation = [&](auto first, auto second) {
    double sum = 0;
    for (std::uint32_t i = 0; i < kPairs; ++i) sum += (first(i) - 0.5) * (second(i) - 0.5);
    return sum * 12 / kPairs;  // a uniform's variance is 1/12
  };
  const auto draw = [&](std::uint32_t i) { return noise.uniform(i, Purpose::draw, 8); };
  const double bound = 4 / std::sqrt(double{kPairs});  // four standard errors
  EXPECT_NEAR(correlation(draw, [&](std::uint32_t i) { return noise.uniform(i + 1, Purpose::draw, 8); }), 0, bound);
  EXPECT_NEAR(correlation(draw, [&](std::uint32_t i) { return noise.uniform(i, Purpose::draw, 9); }), 0, bound);
  EXPECT_NEAR(correlation(draw, [&](std::uint32_t i) { return noise.uniform(i, Purpose::draw, 12); }), 0, bound);
  EXPECT_NEAR(correlation(draw, [&](std::uint32_t i) { return noise.uniform(i, Purpose::draft, 8); }), 0, bound);
}

TEST(KeyedNoise, FourNeighbouringTokensAreOneBlock) {
  const KeyedNoise noise(11, 2);
  for (const TokenId token : {0, 1, 2, 3, 4, 7, 248'319, 2'147'483'647}) {
    const auto id = static_cast<std::uint32_t>(token);
    EXPECT_EQ(noise.uniform(6, Purpose::draft, token), noise.uniforms(6, Purpose::draft, id / 4)[id % 4]) << token;
  }
}

TEST(KeyedNoise, UniformStaysInsideTheOpenIntervalAndIsFlat) {
  const KeyedNoise noise(1234);
  constexpr int kDraws = 100'000;
  double sum = 0, squares = 0;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const double u = noise.uniform(i, Purpose::draw);
    ASSERT_GT(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / kDraws, 1.0 / 2, 0.004);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.004);
}

TEST(KeyedNoise, GumbelBoundsHoldAtTheExtremeWords) {
  const auto gumbel_of_word = [](double word) { return -std::log(-std::log((word + 0.5) * 0x1p-32)); };
  const double lowest = gumbel_of_word(0), highest = gumbel_of_word(0xffffffffu);
  EXPECT_LT(KeyedNoise::kGumbelMin, lowest);
  EXPECT_GT(KeyedNoise::kGumbelMax, highest);
  EXPECT_NEAR(lowest, KeyedNoise::kGumbelMin, 0.1) << "the bound is tight enough to prune with";
  EXPECT_NEAR(highest, KeyedNoise::kGumbelMax, 0.1);
}

TEST(KeyedNoise, GumbelHasTheStandardMeanAndVariance) {
  const KeyedNoise noise(77);
  constexpr int kDraws = 200'000;
  double sum = 0, squares = 0;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const double g = noise.gumbel(i, Purpose::residual, 3);
    sum += g;
    squares += g * g;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 0.577216, 0.012);                           // Euler's constant; standard error 0.003
  EXPECT_NEAR(squares / kDraws - mean * mean, 1.644934, 0.03);  // pi^2 / 6
}

}  // namespace
}  // namespace foresay
