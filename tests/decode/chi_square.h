// decode/chi_square.h: does a histogram of draws fit a distribution?
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "decode/sample/distribution.h"

namespace foresay {

/// Fails when `counts[id]` do not fit d at the 1 % level (Pearson's test), or when an id outside the support was drawn.
/// Supports of 2 to 8 ids.
inline void expect_fits(const std::vector<int>& counts, const Distribution& d) {
  constexpr std::array<double, 8> kCritical = {0, 6.635, 9.210, 11.345, 13.277, 15.086, 16.812, 18.475};  // by freedom
  double draws = 0;
  for (std::size_t id = 0; id < counts.size(); ++id) {
    draws += counts[id];
    if (d.probability(static_cast<TokenId>(id)) == 0) {
      EXPECT_EQ(counts[id], 0) << "id " << id << " has no mass";
    }
  }
  double statistic = 0;
  for (std::size_t i = 0; i < d.ids().size(); ++i) {
    const double expected = draws * d.p()[i];
    const double error = counts[static_cast<std::size_t>(d.ids()[i])] - expected;
    ASSERT_GE(expected, 5) << "too few draws for this test";
    statistic += error * error / expected;
  }
  ASSERT_GE(d.ids().size(), 2u);
  ASSERT_LE(d.ids().size(), kCritical.size());
  EXPECT_LT(statistic, kCritical[d.ids().size() - 1]);
}

}  // namespace foresay
