#include "decode/sample/log_probabilities.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "decode/sample/row.h"

namespace foresay {
namespace {

TEST(LogProbabilities, AreLogSoftmaxAndTheMostLikelyIdsInOrder) {
  const std::vector<float> row = {std::log(1.0f), std::log(4.0f), std::log(2.0f), std::log(1.0f)};
  const auto found = log_probabilities(row, 3, 3, kNoLimit);
  EXPECT_NEAR(found.value, std::log(1.0 / 8), 1e-7);
  ASSERT_EQ(found.top.size(), 3u);
  const TokenId ids[] = {1, 2, 0};
  const double p[] = {0.5, 0.25, 0.125};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found.top[i].id, ids[i]);
    EXPECT_NEAR(found.top[i].value, std::log(p[i]), 1e-7);
  }
}

TEST(LogProbabilities, MoreThanTheRowHasIsTheWholeRow) {
  EXPECT_EQ(log_probabilities(std::vector<float>{1, 2}, 0, 20, kNoLimit).top.size(), 2u);
  EXPECT_TRUE(log_probabilities(std::vector<float>{1, 2}, 0, 0, kNoLimit).top.empty());
}

TEST(LogProbabilities, MaskedAndPaddingIdsHaveNoMass) {
  const float masked = -std::numeric_limits<float>::infinity();
  const auto found = log_probabilities(std::vector<float>{0, masked, 0, 50}, 0, 4, 3);
  EXPECT_NEAR(found.value, std::log(0.5), 1e-7);
  EXPECT_EQ(found.top.size(), 2u);
}

TEST(LogProbabilities, StayFiniteForExtremeRows) {
  const std::vector<float> row = {3.0e38f, -3.0e38f};
  EXPECT_EQ(log_probabilities(row, 0, 1, kNoLimit).value, 0);
  EXPECT_TRUE(std::isfinite(log_probabilities(row, 1, 1, kNoLimit).value));
}

}  // namespace
}  // namespace foresay
