#include "decode/sample/shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "decode/chain_by_definition.h"
#include "decode/sample/row.h"

namespace foresay {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Ids = std::vector<TokenId>;

/// The message of the ErrorCode::internal that `act` throws.
template <typename Act>
std::string internal_error(Act act) {
  try {
    (void)act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal);
    return error.what();
  }
  ADD_FAILURE() << "did not throw";
  return "";
}

void expect_is_distribution(const Distribution& d) {
  ASSERT_EQ(d.ids().size(), d.p().size());
  ASSERT_FALSE(d.ids().empty());
  EXPECT_TRUE(std::ranges::adjacent_find(d.ids(), std::greater_equal<>()) == d.ids().end()) << "ids must ascend";
  EXPECT_TRUE(std::ranges::all_of(d.p(), [](double p) { return p > 0 && p <= 1; }));
  EXPECT_NEAR(std::accumulate(d.p().begin(), d.p().end(), 0.0), 1, 1e-12);
}

std::vector<float> random_row(std::mt19937& random, std::size_t n) {
  std::normal_distribution<float> normal(0, std::array{0.3f, 2.0f, 6.0f}[random() % 3]);
  const bool has_ties = random() % 3 == 0, has_masked_ids = random() % 3 == 0;
  std::vector<float> row(n);
  for (float& logit : row) {
    logit = normal(random);
    if (has_ties) logit = std::round(logit * 2) / 2;
    if (has_masked_ids && random() % 5 == 0) logit = -kInf;
  }
  row[random() % n] = 1.0f;  // never all masked
  return row;
}

SamplingOptions random_options(std::mt19937& random, std::size_t n) {
  std::uniform_real_distribution<double> uniform(0, 1);
  SamplingOptions options;
  options.temperature = std::array{0.05, 0.3, 0.7, 1.0, 1.7, 10.0}[random() % 6];
  if (random() % 2) options.top_k = 1 + static_cast<int>(random() % (n + 2));
  if (random() % 2) options.top_p = random() % 4 ? 1 - uniform(random) * 0.9 : 1 - 1e-7 * (1 - uniform(random));
  if (random() % 3 == 0) options.min_p = uniform(random) * 0.5;
  if (random() % 4 == 0) options.min_keep = 1 + static_cast<int>(random() % 5);
  options.xtc_threshold = uniform(random) * 0.3;
  if (random() % 2) options.xtc_exempt = {static_cast<TokenId>(random() % n)};
  if (random() % 2) std::ranges::shuffle(options.order, random);
  return options;
}

TEST(Shape, EqualsTheDefinitionsOnRandomRowsAndSettings) {
  std::mt19937 random(3);
  for (const std::size_t n : {1u, 2u, 3u, 8u, 15u, 16u, 17u, 64u, 65u, 3000u}) {
    for (int round = 0; round < 200; ++round) {
      const auto row = random_row(random, n);
      const auto options = random_options(random, n);
      const bool xtc = random() % 2 == 0;
      SCOPED_TRACE(testing::Message() << "n " << n << " round " << round << " temperature " << options.temperature
                                      << " top_k " << options.top_k << " top_p " << options.top_p << " min_p "
                                      << options.min_p << " xtc " << xtc << " first step "
                                      << static_cast<int>(options.order.front()));
      const auto expected = chain_by_definition(row, {}, options, xtc);
      const auto found = shape(row, options, xtc);
      expect_is_distribution(found);
      ASSERT_EQ(found.ids(), expected.ids());
      for (std::size_t i = 0; i < found.p().size(); ++i) ASSERT_NEAR(found.p()[i], expected.p()[i], 1e-13);
    }
  }
}

TEST(Shape, IdsAtOrAboveTheVocabLimitGetNothingAndDoNotCount) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    auto row = random_row(random, 40);
    auto options = random_options(random, 40);
    options.vocab_limit = 33;
    row[5] = 0;
    row[35] = 50;  // padding may hold anything finite
    const auto found = shape(row, options);
    const auto expected = chain_by_definition(row, {}, options, false);
    ASSERT_EQ(found.ids(), expected.ids());
    ASSERT_LT(found.ids().back(), 33);
    ASSERT_EQ(find_peak(row, 33).id, expected.most_likely());
  }
}

TEST(Shape, TopKKeepsTheLowerIdsAtATie) {
  const std::vector<float> row = {1, 3, 2, 3, 2, 2};
  EXPECT_EQ(shape(row, {.temperature = 1, .top_k = 1}).ids(), (Ids{1}));
  EXPECT_EQ(shape(row, {.temperature = 1, .top_k = 3}).ids(), (Ids{1, 2, 3}));
  EXPECT_EQ(shape(row, {.temperature = 1, .top_k = 4}).ids(), (Ids{1, 2, 3, 4}));
}

TEST(Shape, TopKKeepsTheLowerIdsAtATieInALongRow) {
  const std::vector<float> row(10'000, 0.5f);
  const auto d = shape(row, {.temperature = 1, .top_k = 100});
  ASSERT_EQ(d.ids().size(), 100u);
  EXPECT_EQ(d.ids().back(), 99);
}

TEST(Shape, TopKOfTheVocabularyOrMoreIsOff) {
  const std::vector<float> row = {1, 3, 2};
  for (const int top_k : {0, 3, 4, std::numeric_limits<int>::max()}) {
    EXPECT_EQ(shape(row, {.temperature = 1, .top_k = top_k}).ids(), (Ids{0, 1, 2})) << top_k;
  }
}

TEST(Shape, TopPKeepsEqualIdsTogetherAndAlwaysTheMostLikely) {
  EXPECT_EQ(shape(std::vector<float>{0, 2, 0, 2}, {.temperature = 1, .top_p = 0.2}).ids(), (Ids{1, 3}));
  EXPECT_EQ(shape(std::vector<float>{0, 9, 0}, {.temperature = 1, .top_p = 1e-300}).ids(), (Ids{1}));
}

TEST(Shape, FiltersActBeforeTemperature) {
  // Probabilities 0.643, 0.236, 0.087, 0.032: at temperature 10 they would be nearly equal and top-p would keep them
  // all.
  const std::vector<float> row = {3, 2, 1, 0};
  EXPECT_EQ(shape(row, {.temperature = 10, .top_p = 0.8}).ids(), (Ids{0, 1}));
  EXPECT_EQ(shape(row, {.temperature = 0.01, .min_p = 0.1}).ids(), (Ids{0, 1, 2}));
}

TEST(Shape, GreedyGivesAllMassToTheLowestBestId) {
  const auto d = shape(std::vector<float>{1, 4, -kInf, 4}, {.temperature = 0, .top_k = 3, .top_p = 0.5});
  EXPECT_EQ(d.ids(), (Ids{1}));
  EXPECT_EQ(d.p(), (std::vector<double>{1.0}));
}

TEST(Shape, ExtremeTemperaturesStayFinite) {
  const std::vector<float> row = {3.0e38f, -3.0e38f, 0, 2.9e38f, -kInf};
  for (const double temperature : {5e-324, 1e-300, 1e-6, 1.0, 100.0, 1e300}) {
    SCOPED_TRACE(temperature);
    for (const double top_p : {0.9, 1.0})
      expect_is_distribution(shape(row, {.temperature = temperature, .top_p = top_p}));
  }
  const std::vector<float> mild = {1, 2, 2, 0};
  EXPECT_EQ(shape(mild, {.temperature = 1e-6}).ids(), (Ids{1, 2}));
  const auto flat = shape(mild, {.temperature = 100});
  for (const double p : flat.p()) EXPECT_NEAR(p, 0.25, 0.005);
}

TEST(Shape, MinusInfinityMasksAnId) {
  EXPECT_EQ(shape(std::vector<float>{-kInf, 1, -kInf, 0}, {.temperature = 1}).ids(), (Ids{1, 3}));
}

// Case B104: such logits once became token 0, thousands of times.
TEST(Shape, NonFiniteLogitsAreAnErrorThatNamesTheFirstBadId) {
  for (const std::size_t n : {1u, 7u, 16u, 17u, 40u}) {
    for (std::size_t bad = 0; bad < n; ++bad) {
      for (const float value : {kNan, -kNan, kInf}) {
        std::vector<float> row(n, 0.5f);
        row[bad] = value;
        row.back() = value;
        for (const double temperature : {0.0, 1.0}) {
          const auto message = internal_error([&] { return shape(row, {.temperature = temperature, .top_k = 2}); });
          ASSERT_TRUE(message.find("id " + std::to_string(bad) + " is") != std::string::npos) << message;
        }
        ASSERT_NE(internal_error([&] { return find_peak(row); }), "");
      }
    }
  }
}

TEST(Shape, NonFiniteLogitsBehindTheVocabLimitAreAnErrorToo) {
  std::vector<float> row(20, 0.5f);
  row[18] = kNan;
  EXPECT_NE(internal_error([&] { return find_peak(row, 10); }).find("id 18 is"), std::string::npos);
}

TEST(Shape, NothingToEmitIsAnError) {
  const std::vector<float> masked(20, -kInf);
  for (const double temperature : {0.0, 1.0}) {
    const auto message = internal_error([&] { return shape(masked, {.temperature = temperature}); });
    EXPECT_NE(message.find("id 0"), std::string::npos) << message;
  }
  std::vector<float> only_padding(20, -kInf);
  only_padding[15] = 1;
  EXPECT_NE(internal_error([&] { return find_peak(only_padding, 15); }), "");
  EXPECT_NE(internal_error([&] { return find_peak({}); }), "");
}

TEST(Peak, IsTheLowestIdAmongEqualsAtAnyLength) {
  for (std::size_t n = 1; n < 70; ++n) {
    for (std::size_t at = 0; at < n; ++at) {
      std::vector<float> row(n, -1);
      row[at] = 2;
      row.back() = 2;
      ASSERT_EQ(find_peak(row).id, static_cast<TokenId>(at)) << n;
    }
  }
}

}  // namespace
}  // namespace foresay
