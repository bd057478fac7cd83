#include "decode/sample/scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "decode/sample/exponential.h"
#include "decode/sample/scan_variants.h"

namespace foresay {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kSizes[] = {
    0, 1, 2, 7, 15, 16, 17, 31, 63, 64, 65, 127, 200, 255, 256, 257, 320, 1023, 1024, 1025, 5000};

std::vector<float> random_row(std::mt19937& random, std::size_t n) {
  std::normal_distribution<float> normal(0, std::array{0.5f, 3.0f, 40.0f}[random() % 3]);
  const bool has_ties = random() % 3 == 0, has_masked = random() % 3 == 0;
  std::vector<float> row(n);
  for (float& x : row) {
    x = normal(random);
    if (has_ties) x = std::round(x);
    if (has_masked && random() % 4 == 0) x = -kInf;
  }
  return row;
}

/// Every hit of a row: columns in order.
template <typename Next>
std::vector<std::size_t> all_hits(Next next) {
  std::vector<std::size_t> columns;
  for (Hits hits = next(0); hits.mask != 0; hits = next(hits.first + kHitGroup)) {
    EXPECT_EQ(hits.first % kHitGroup, 0u);
    for (std::uint64_t mask = hits.mask; mask != 0; mask &= mask - 1) {
      columns.push_back(hits.first + static_cast<std::size_t>(std::countr_zero(mask)));
    }
  }
  return columns;
}

/// Calls `act(row)` for rows of every size.
template <typename Act>
void for_rows(Act act) {
  std::mt19937 random(17);
  for (const std::size_t n : kSizes) {
    for (int round = 0; round < 8; ++round) act(random_row(random, n), random);
  }
}

TEST(Scan, SurveyIsTheLowestHighestColumnOnEveryInstructionSet) {
  for_rows([](const std::vector<float>& row, std::mt19937&) {
    const auto expected = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
    for (const auto* walks : scan_variants::available()) {
      const Survey found = walks->survey(row);
      ASSERT_TRUE(found.is_usable);
      ASSERT_EQ(found.peak, row.empty() ? 0 : expected) << row.size();
    }
  });
}

TEST(Scan, SurveySeesNanAndInfinityAnywhere) {
  for (const std::size_t n : kSizes) {
    for (std::size_t at = 0; at < n; at += 1 + n / 70) {
      for (const float bad : {kNan, -kNan, kInf}) {
        std::vector<float> row(n, 0.5f);
        row[at] = bad;
        for (const auto* walks : scan_variants::available())
          ASSERT_FALSE(walks->survey(row).is_usable) << n << " " << at;
      }
    }
  }
}

TEST(Scan, SumsOfExponentialsHaveTheSameBitsOnEveryInstructionSet) {
  for_rows([](const std::vector<float>& row, std::mt19937&) {
    const float peak = row.empty() ? 0 : std::ranges::max(row);
    if (peak == -kInf) return;
    for (const double scale : {1.0, 1 / 0.7, 1e-3, 1e6, std::numeric_limits<double>::max()}) {
      const double expected = scan_variants::kReference.sum_exp(row, peak, scale);
      long double exact = 0;
      for (const float x : row) exact += std::exp((static_cast<long double>(x) - peak) * scale);
      ASSERT_NEAR(expected, static_cast<double>(exact), 1e-14 * static_cast<double>(exact));
      for (const auto* walks : scan_variants::available()) ASSERT_EQ(walks->sum_exp(row, peak, scale), expected);
    }
  });
}

TEST(Scan, WeightsAreExponentialsWithin1e15) {
  std::mt19937 random(4);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int i = 0; i < 200'000; ++i) {
    const double x = -708 * std::pow(uniform(random), i % 2 ? 1 : 6);
    const auto exact = std::exp(static_cast<long double>(x));
    ASSERT_LT(std::abs((weight_of(x) - exact) / exact), 1e-15L) << x;
  }
  EXPECT_EQ(weight_of(0), 1);
  EXPECT_EQ(weight_of(-709), 0);
  EXPECT_GT(weight_of(-708.3), 0);
  EXPECT_EQ(weight_of(-std::numeric_limits<double>::infinity()), 0);
}

TEST(Scan, AboveIsExactOnEveryInstructionSet) {
  for_rows([](const std::vector<float>& row, std::mt19937& random) {
    const float border = row.empty() || random() % 4 == 0 ? -kInf : row[random() % row.size()];
    std::vector<std::size_t> expected;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i] > border) expected.push_back(i);
    }
    for (const auto* walks : scan_variants::available()) {
      ASSERT_EQ(all_hits([&](std::size_t from) { return walks->next_above(row, from, border); }), expected);
    }
  });
}

// Identical on every instruction set, and none that reaches the bar is missing.
TEST(Scan, ContendersAreTheSameOnEveryInstructionSetAndMissNoWinner) {
  std::size_t passed = 0, seen = 0;
  for_rows([&](const std::vector<float>& row, std::mt19937& random) {
    const float peak = row.empty() ? 0 : std::ranges::max(row);
    if (peak == -kInf) return;
    const KeyedNoise noise(random(), random() % 3);
    const std::uint32_t index = random() % 1000;
    const Purpose purpose = std::array{Purpose::draw, Purpose::draft, Purpose::residual}[random() % 3];
    const double temperature = std::array{0.05, 0.7, 1.0, 1.7, 100.0, 1e-300}[random() % 6];
    for (const double best : {-std::numeric_limits<double>::infinity(), -3.0, 0.5, 4.0, 9.0, 22.0}) {
      const Contest bar = contest(noise.inputs(index, purpose), peak, temperature, best);
      const auto hits = [&](const scan_variants::Walks& walks) {
        return all_hits([&](std::size_t from) { return walks.next_contenders(row, from, bar); });
      };
      const auto expected = hits(scan_variants::kReference);
      for (const auto* walks : scan_variants::available()) ASSERT_EQ(hits(*walks), expected) << row.size();
      for (std::size_t i = 0; i < row.size(); ++i) {
        const auto id = static_cast<TokenId>(i);
        const double score = (row[i] - static_cast<double>(peak)) / temperature + noise.gumbel(index, purpose, id);
        if (row[i] == -kInf || score < best || score < -700) continue;
        ASSERT_TRUE(std::ranges::binary_search(expected, i)) << i << " scores " << score << " of " << best;
      }
      if (best >= 4) {
        passed += expected.size();
        seen += row.size();
      }
    }
  });
  EXPECT_LT(passed, seen / 4) << "a bar that lets nearly all pass is none";
}

}  // namespace
}  // namespace foresay
