#include "decode/lossless/goodness_of_fit.h"

#include <gtest/gtest.h>

#include <random>

namespace foresay {
namespace {

TEST(ChiSquareTail, HasTheTabulatedValues) {
  struct Row {
    double x;
    int freedom;
    double p;
  };
  for (const Row& row : {Row{3.8415, 1, 0.05}, {6.6349, 1, 0.01}, {23.9281, 1, 1e-6}, {11.0705, 5, 0.05},
           {2.7326, 8, 0.95}, {124.342, 100, 0.05}, {67.3276, 100, 0.995}, {1074.679, 1000, 0.05}}) {
    EXPECT_NEAR(chi_square_tail(row.x, row.freedom) / row.p, 1, 1e-3) << row.x << " of " << row.freedom;
  }
  EXPECT_EQ(chi_square_tail(0, 4), 1);
  EXPECT_EQ(chi_square_tail(5, 0), 1);
  EXPECT_LT(chi_square_tail(2000, 3), 1e-100);
}

const Distribution kFour = {{2, 5, 7, 9}, {0.5, 0.3, 0.15, 0.05}};

std::map<TokenId, int> draw(int draws, std::vector<double> weights) {
  std::mt19937 random(1);
  std::discrete_distribution<std::size_t> pick(weights.begin(), weights.end());
  std::map<TokenId, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[kFour.ids()[pick(random)]];
  return counts;
}

TEST(GoodnessOfFit, TakesFairDrawsAndNotOthers) {
  GoodnessOfFit fair;
  fair.add(draw(2000, {0.5, 0.3, 0.15, 0.05}), kFour);
  EXPECT_EQ(fair.freedom(), 3);
  EXPECT_GT(fair.p_value(), 1e-3);
  GoodnessOfFit loaded;
  loaded.add(draw(2000, {0.42, 0.38, 0.15, 0.05}), kFour);
  EXPECT_LT(loaded.p_value(), 1e-6);
  EXPECT_FALSE(loaded.impossible());
}

TEST(GoodnessOfFit, PoolsRareIdsAndLeavesOutWhatSaysNothing) {
  GoodnessOfFit fit;
  fit.add(draw(60, {0.5, 0.3, 0.15, 0.05}), kFour);  // 3 of the last one are expected: it joins another cell
  EXPECT_EQ(fit.freedom(), 2);
  fit.add({{2, 3}}, kFour);  // all cells are rare: one is left
  fit.add({{4, 100}}, {{4}, {1.0}});
  EXPECT_EQ(fit.freedom(), 2);
  fit.add(draw(2000, {0.5, 0.3, 0.15, 0.05}), kFour);
  EXPECT_EQ(fit.freedom(), 5);
}

TEST(GoodnessOfFit, AnImpossibleIdIsNoMatterOfChance) {
  GoodnessOfFit fit;
  fit.add({{2, 1}, {3, 1}}, kFour);
  EXPECT_TRUE(fit.impossible());
  EXPECT_EQ(fit.p_value(), 0);
}

}  // namespace
}  // namespace foresay
