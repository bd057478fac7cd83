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

class RmsNorm : public EveryIsa {};
FORESAY_EVERY_ISA(RmsNorm);
class L2Norm : public EveryIsa {};
FORESAY_EVERY_ISA(L2Norm);
class RopeRow : public EveryIsa {};
FORESAY_EVERY_ISA(RopeRow);
class Activations : public EveryIsa {};
FORESAY_EVERY_ISA(Activations);

// Sums of n squares in 16 partial sums are off by at most (n / 16 + 4) * 2^-24, relatively: 4e-6 up to n = 1024, and
// half of that after the root.
TEST_P(RmsNorm, DividesByTheRootMeanSquareAndTakesTheGain) {
  for (const int n : {1, 7, 8, 16, 33, 1024}) {
    for (const float size : {1.0f, 1e-4f, 1e4f}) {
      const auto x = random_floats(static_cast<std::size_t>(n), 1, size);
      const auto gain = random_floats(static_cast<std::size_t>(n), 2);
      std::vector<float> y(x.size());
      rms_norm_row(x.data(), gain.data(), 1e-6f, n, y.data());
      const double scale = 1 / std::sqrt(sum_of_squares(x) / n + static_cast<double>(1e-6f));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = x[i] * scale * gain[i];
        EXPECT_NEAR(y[i], expected, 3e-6 * std::abs(expected));
      }
      auto in_place = x;
      rms_norm_row(in_place.data(), gain.data(), 1e-6f, n, in_place.data());
      EXPECT_EQ(bits_of(in_place), bits_of(y));
    }
  }
}

TEST_P(RmsNorm, ZerosStayZerosAndNanSpreads) {
  const std::vector<float> gain(4, 2.0f);
  std::vector<float> x(4, 0.0f);
  rms_norm_row(x.data(), gain.data(), 1e-6f, 4, x.data());
  EXPECT_EQ(x, std::vector<float>(4, 0.0f));
  x[2] = NAN;
  rms_norm_row(x.data(), gain.data(), 1e-6f, 4, x.data());
  for (const float value : x) EXPECT_TRUE(std::isnan(value));
}

TEST_P(L2Norm, TheEpsilonIsOnTheSum) {
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

TEST_P(RopeRow, TurnsHalfSplitPairsAndLeavesTheRest) {
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

float silu(float x) {
  const float one = 1;
  float y = 0;
  swiglu_row(&x, &one, 0, 1, &y);
  return y;
}
float gated(float x) {
  float y = 1;
  sigmoid_gate_row(&x, 1, &y);
  return y;
}

TEST_P(Activations, ExponentialsAreWithinTwoUnitsInTheLastPlace) {
  std::vector<float> x, y;
  for (double value = -87.3; value <= 88.3; value += 0.0173) x.push_back(static_cast<float>(value));
  y.resize(x.size());
  exp_row(x.data(), static_cast<int>(x.size()), y.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = std::exp(static_cast<double>(x[i]));
    ASSERT_NEAR(y[i], expected, 2e-7 * expected) << x[i];
  }
  const std::vector<float> borders = {0.0f, -0.0f, -88.0f, -1e30f, -INFINITY, 89.0f, INFINITY};
  const std::vector<float> expected = {1, 1, 0, 0, 0, INFINITY, INFINITY};
  y.resize(borders.size());
  exp_row(borders.data(), static_cast<int>(borders.size()), y.data());
  EXPECT_EQ(y, expected);
  const float nan = NAN;
  exp_row(&nan, 1, y.data());
  EXPECT_TRUE(std::isnan(y[0]));
}

TEST_P(Activations, RowOperationsGiveTheBitsOfTheReference) {
  for (const int n : {1, 7, 15, 16, 17, 33, 100}) {
    const auto x = random_floats(static_cast<std::size_t>(n), 5, 9.0f),
               z = random_floats(static_cast<std::size_t>(n), 6, 9.0f);
    const auto all = [&] {
      std::vector<float> y, row(x.size());
      const auto add = [&] { y.insert(y.end(), row.begin(), row.end()); };
      rms_norm_row(x.data(), z.data(), 1e-6f, n, row.data()), add();
      gated_rms_norm_row(x.data(), z.data(), 1e-6f, x.data(), n, row.data()), add();
      l2_norm_row(x.data(), 1e-6f, 0.3f, n, row.data()), add();
      swiglu_row(x.data(), z.data(), 0, n, row.data()), add();
      swiglu_row(x.data(), z.data(), 0.75f, n, row.data()), add();
      sigmoid_gate_row(x.data(), n, row.data()), add();
      add_row(x.data(), z.data(), n, row.data()), add();
      exp_row(x.data(), n, row.data()), add();
      rope_row(row.data(), x.data(), z.data(), n / 2), add();
      return bits_of(y);
    };
    EXPECT_EQ(all(), on_reference(all)) << n;
  }
}

TEST_P(Activations, AClampCutsTheGateAboveAndTheOtherOnBothSides) {
  const std::vector<float> gates = {-20, -1, 0.1f, 2, 30}, ups = {-9, 0.25f, 9, -9, 0.5f};
  std::vector<float> y(gates.size());
  swiglu_row(gates.data(), ups.data(), 0.5f, static_cast<int>(y.size()), y.data());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const float gate = std::min(silu(gates[i]), 0.5f);
    EXPECT_EQ(y[i], gate * std::clamp(ups[i], -0.5f, 0.5f)) << i;
  }
  EXPECT_LT(silu(-1), 0) << "a gate below zero is left as it is";
  const float nan = NAN, one = 1;
  swiglu_row(&nan, &one, 0.5f, 1, y.data());
  EXPECT_TRUE(std::isnan(y[0]));
  swiglu_row(&one, &nan, 0.5f, 1, y.data());
  EXPECT_TRUE(std::isnan(y[0]));
}

TEST_P(RmsNorm, GatedIsTheNormTimesSiluOfTheGate) {
  for (const int n : {1, 17, 128}) {
    const auto x = random_floats(static_cast<std::size_t>(n), 1),
               z = random_floats(static_cast<std::size_t>(n), 2, 5.0f);
    const std::vector<float> gain(x.size(), 1.5f);
    std::vector<float> y = x, normed(x.size());
    rms_norm_row(x.data(), gain.data(), 1e-6f, n, normed.data());
    gated_rms_norm_row(y.data(), gain.data(), 1e-6f, z.data(), n, y.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = normed[i] * z[i] / (1 + std::exp(-static_cast<double>(z[i])));
      EXPECT_NEAR(y[i], expected, 6e-7 * std::abs(expected));
    }
  }
}

TEST_P(Activations, MatchTheirFormulasAndNeverOverflow) {
  for (double x = -90; x <= 90; x += 0.37) {
    const auto value = static_cast<float>(x);
    const double s = 1 / (1 + std::exp(-static_cast<double>(value)));
    EXPECT_NEAR(sigmoid(value), s, 3e-7 * s + 1e-38);  // below 2^-126 only the absolute error is small
    EXPECT_NEAR(silu(value), value * s, 6e-7 * std::abs(value * s) + 1e-36);
    EXPECT_NEAR(gated(value), s, 6e-7 * s + 1e-36);
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
