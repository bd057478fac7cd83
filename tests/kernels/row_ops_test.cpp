#include "kernels/row_ops.h"

#include <cmath>
#include <limits>

#include "kernels/every_isa.h"

namespace foresay {
namespace {

double sum_of_squares(const std::vector<float>& x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return sum;
}

// Sums of n squares in index order are off by at most n * 2^-24, relatively: 1e-4 up to n = 1024, and half of that
// after the root.
TEST(RmsNorm, DividesByTheRootMeanSquareAndTakesTheGain) {
  for (const int n : {1, 7, 8, 16, 33, 1024}) {
    for (const float size : {1.0f, 1e-4f, 1e4f}) {
      const auto x = random_floats(static_cast<std::size_t>(n), 1, size);
      const auto gain = random_floats(static_cast<std::size_t>(n), 2);
      std::vector<float> y(x.size());
      rms_norm_row(x.data(), gain.data(), 1e-6f, n, y.data());
      const double scale = 1 / std::sqrt(sum_of_squares(x) / n + static_cast<double>(1e-6f));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = x[i] * scale * gain[i];
        EXPECT_NEAR(y[i], expected, 5e-5 * std::abs(expected));
      }
      auto in_place = x;
      rms_norm_row(in_place.data(), gain.data(), 1e-6f, n, in_place.data());
      EXPECT_EQ(bits_of(in_place), bits_of(y));
    }
  }
}

TEST(RmsNorm, ZerosStayZerosAndNanSpreads) {
  const std::vector<float> gain(4, 2.0f);
  std::vector<float> x(4, 0.0f);
  rms_norm_row(x.data(), gain.data(), 1e-6f, 4, x.data());
  EXPECT_EQ(x, std::vector<float>(4, 0.0f));
  x[2] = NAN;
  rms_norm_row(x.data(), gain.data(), 1e-6f, 4, x.data());
  for (const float value : x) EXPECT_TRUE(std::isnan(value));
}

TEST(L2Norm, TheEpsilonIsOnTheSum) {
  for (const float size : {1.0f, 1e-3f}) {  // the second: sum and epsilon are alike, so a mean would show
    const auto x = random_floats(16, 3, size);
    std::vector<float> y(x.size());
    l2_norm_row(x.data(), 1e-6f, 0.25f, 16, y.data());
    const double factor = 0.25 / std::sqrt(sum_of_squares(x) + static_cast<double>(1e-6f));
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i], x[i] * factor, 1e-6 * std::abs(x[i] * factor));
    auto in_place = x;
    l2_norm_row(in_place.data(), 1e-6f, 0.25f, 16, in_place.data());
    EXPECT_EQ(bits_of(in_place), bits_of(y));
  }
}

TEST(RopeRow, TurnsHalfSplitPairsAndLeavesTheRest) {
  for (const int pairs : {0, 1, 7, 8, 9, 32}) {
    const std::size_t n = 2 * static_cast<std::size_t>(pairs) + 5;
    const auto x = random_floats(n, 4);
    std::vector<float> cosines, sines;
    for (int j = 0; j < pairs; ++j) {
      cosines.push_back(static_cast<float>(std::cos(0.7 * j + 1)));
      sines.push_back(static_cast<float>(std::sin(0.7 * j + 1)));
    }
    auto y = x;
    rope_row(y.data(), cosines.data(), sines.data(), pairs);
    for (std::size_t j = 0; j < static_cast<std::size_t>(pairs); ++j) {
      const double a = x[j], b = x[j + static_cast<std::size_t>(pairs)], angle = 0.7 * static_cast<double>(j) + 1;
      EXPECT_NEAR(y[j], a * std::cos(angle) - b * std::sin(angle), 3e-7);  // three roundings of values below 1.5
      EXPECT_NEAR(y[j + static_cast<std::size_t>(pairs)], b * std::cos(angle) + a * std::sin(angle), 3e-7);
    }
    for (std::size_t i = 2 * static_cast<std::size_t>(pairs); i < n; ++i) EXPECT_EQ(y[i], x[i]);
  }
}

TEST(Activations, MatchTheirFormulasAndNeverOverflow) {
  for (double x = -90; x <= 90; x += 0.37) {
    const auto value = static_cast<float>(x);
    const double s = 1 / (1 + std::exp(-static_cast<double>(value)));
    EXPECT_NEAR(sigmoid(value), s, 3e-7 * s + 1e-38);  // below 2^-126 only the absolute error is small
    EXPECT_NEAR(silu(value), value * s, 4e-7 * std::abs(value * s) + 1e-36);
    EXPECT_NEAR(softplus(value), std::log1p(std::exp(static_cast<double>(value))),
        3e-7 * std::log1p(std::exp(static_cast<double>(value))) + 1e-38);
  }
  for (const float huge : {1e4f, 1e30f, std::numeric_limits<float>::max()}) {
    EXPECT_EQ(sigmoid(huge), 1.0f);
    EXPECT_EQ(sigmoid(-huge), 0.0f);
    EXPECT_EQ(silu(huge), huge);
    EXPECT_EQ(silu(-huge), 0.0f);
    EXPECT_EQ(softplus(huge), huge);
    EXPECT_EQ(softplus(-huge), 0.0f);
  }
}

}  // namespace
}  // namespace foresay
