#include "kernels/linear.h"

#include <cmath>
#include <limits>

#include "kernels/golden_matrix.h"
#include "kernels/test_matrix.h"

namespace foresay {
namespace {

class Linear : public EveryIsa {};
FORESAY_EVERY_ISA(Linear);

std::vector<float> run(const std::vector<float>& x, int rows, const WeightView& w, std::vector<int> cuts = {}) {
  std::vector<float> y(static_cast<std::size_t>(rows) * static_cast<std::size_t>(w.out), -7.0f);
  std::vector<float> scratch(static_cast<std::size_t>(w.in * kLinearTile));
  int first = 0;
  cuts.push_back(w.out);
  for (const int last : cuts) {
    linear(x.data(), rows, w, y.data(), first, last, scratch.data());
    first = last;
  }
  return y;
}

std::vector<float> rows_of(const std::vector<float>& values, int width, int first, int count) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first) * width;
  return {begin, begin + static_cast<std::ptrdiff_t>(count) * width};
}

constexpr int kOut = 5;
constexpr int kMostRows = 33;

std::vector<float> activations(const WeightView& w) {
  return random_floats(static_cast<std::size_t>(kMostRows) * static_cast<std::size_t>(w.in), 3);
}

TEST_P(Linear, BitsAreThoseOfTheReferenceForAnyNumberOfRows) {
  for_each_matrix(kOut, [this](const TestMatrix& matrix) {
    const WeightView& w = matrix.view();
    const auto x = activations(w);
    const auto expected = on_reference([&] { return run(x, kMostRows, w); });
    for (const int rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, kMostRows}) {
      ASSERT_EQ(bits_of(run(rows_of(x, w.in, 0, rows), rows, w)), bits_of(rows_of(expected, kOut, 0, rows)))
          << matrix.describe() << ", " << rows << " rows";
    }
  });
}

TEST_P(Linear, ARowDoesNotDependOnTheRowsThatShareTheCall) {
  for_each_matrix(kOut, [](const TestMatrix& matrix) {
    const WeightView& w = matrix.view();
    const auto x = activations(w);
    const auto together = run(x, kMostRows, w);
    for (const int first : {0, 1, 3, 4, 30}) {
      for (const int count : {1, 2, 3}) {
        ASSERT_EQ(
            bits_of(run(rows_of(x, w.in, first, count), count, w)), bits_of(rows_of(together, kOut, first, count)))
            << matrix.describe() << ", rows " << first << " and on";
      }
    }
  });
}

TEST_P(Linear, OutputsDoNotDependOnHowTheyAreSharedOut) {
  for_each_matrix(kOut, [](const TestMatrix& matrix) {
    const auto x = rows_of(activations(matrix.view()), matrix.view().in, 0, 5);
    const auto expected = bits_of(run(x, 5, matrix.view()));
    for (const auto& cuts : std::vector<std::vector<int>>{{1}, {2}, {1, 2, 3, 4}, {0, 4}}) {
      ASSERT_EQ(bits_of(run(x, 5, matrix.view(), cuts)), expected) << matrix.describe();
    }
  });
}

TEST_P(Linear, OutputsOutsideTheRangeAreLeftAlone) {
  const auto matrix = TestMatrix::random({.type = WeightType::bf16}, kOut, 17, 1);
  std::vector<float> x(17, 1.0f), y(kOut, -7.0f), scratch(17 * kLinearTile);
  linear(x.data(), 1, matrix.view(), y.data(), 2, 4, scratch.data());
  EXPECT_EQ(y[1], -7.0f);
  EXPECT_EQ(y[4], -7.0f);
  EXPECT_NE(y[2], -7.0f);
  EXPECT_NE(y[3], -7.0f);
}

TEST_P(Linear, AnyAddressOfTheMatrixGivesTheSameBits) {
  for_each_matrix(kOut, [](TestMatrix matrix) {
    const auto x = rows_of(activations(matrix.view()), matrix.view().in, 0, 5);
    const auto expected = bits_of(run(x, 5, matrix.view()));
    for (const std::size_t offset : {1u, 2u, 3u, 4u, 6u}) {
      matrix.place(offset);
      ASSERT_EQ(bits_of(run(x, 5, matrix.view())), expected) << matrix.describe() << " at offset " << offset;
    }
  });
}

// Each product passes through at most ceil(in / 16) roundings in its partial sum and 4 between the sums, so
// |y - exact| <= (in / 16 + 6) * 2^-24 * sum |x w|, to first order. The unpacked weights count as exact: they
// have tests of their own.
TEST_P(Linear, StaysWithinTheRoundingBoundOfADoubleSum) {
  for_each_matrix(kOut, [](const TestMatrix& matrix) {
    const WeightView& w = matrix.view();
    const auto x = rows_of(activations(w), w.in, 0, 5);
    const auto y = run(x, 5, w);
    const auto weights = unpack_all(w);
    for (int r = 0; r < 5; ++r) {
      for (int n = 0; n < kOut; ++n) {
        double sum = 0, magnitude = 0;
        for (int i = 0; i < w.in; ++i) {
          const double product = static_cast<double>(x[static_cast<std::size_t>(r * w.in + i)]) *
                                 weights[static_cast<std::size_t>(n * w.in + i)];
          sum += product;
          magnitude += std::abs(product);
        }
        ASSERT_NEAR(y[static_cast<std::size_t>(r * kOut + n)], sum, (w.in / 16 + 6) * 0x1p-24 * magnitude)
            << matrix.describe();
      }
    }
  });
}

TEST_P(Linear, InfinitiesAndNanReachTheirOutputAndNoOther) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, -infinity, static_cast<float>(NAN)}) {
    for (const int at : {0, 7, 16, 32}) {  // in the vector part and in the rest
      std::vector<float> weights(3 * 33, 1.0f);
      weights[static_cast<std::size_t>(33 + at)] = bad;
      for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
        const auto stored = OwnedTensor::of(type, {3, 33}, weights);
        const WeightView w = {.type = weight_type(type), .out = 3, .in = 33, .data = stored.bytes.data()};
        const auto y = run(std::vector<float>(5 * 33, 1.0f), 5, w);
        for (std::size_t r = 0; r < 5; ++r) {
          EXPECT_EQ(y[3 * r], 33.0f);
          EXPECT_EQ(y[3 * r + 2], 33.0f);
          EXPECT_TRUE(std::isnan(bad) ? std::isnan(y[3 * r + 1]) : y[3 * r + 1] == bad);
        }
      }
    }
  }
  const auto matrix = TestMatrix::random({.type = WeightType::bf16}, 2, 33, 5);
  auto x = random_floats(5 * 33, 6);
  x[33 + 20] = NAN;
  const auto y = run(x, 5, matrix.view());
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 2 == 1) << i;
}

TEST_P(Linear, GoldenProductsOfMlxPackingsAreMet) {  // 1e-4: the goldens' own tolerance for float32 sums
  for (const MatrixFormat& format : packed_formats()) {
    const auto golden = GoldenMatrix::open(format);
    const auto y = run(golden.tensor("x"), 5, golden.view), expected = golden.tensor("y");
    ASSERT_EQ(y.size(), expected.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_NEAR(y[i], expected[i], 1e-4) << format.bits << " bits, group " << format.group;
    }
  }
}

TEST_P(Linear, DotRowsGivesTheBitsOfLinear) {
  for (const int n : {1, 7, 8, 15, 16, 17, 31, 33, 256}) {
    for (const int count : {1, 3, 4, 8, 9}) {
      const auto v = random_floats(static_cast<std::size_t>(n), 8);
      const auto rows = random_floats(static_cast<std::size_t>(n) * static_cast<std::size_t>(count), 9);
      const WeightView w = {.type = WeightType::f32, .out = count, .in = n, .data = rows.data()};
      std::vector<float> y(static_cast<std::size_t>(count));
      dot_rows(rows.data(), count, v.data(), n, y.data());
      EXPECT_EQ(bits_of(y), bits_of(run(v, 1, w)));
    }
  }
}

TEST(Isa, OnlyWhatTheMachineHasCanBeChosen) {
  EXPECT_EQ(available_isas().front(), Isa::reference);
  for (const Isa isa : available_isas()) {
    use_isa(isa);
    EXPECT_EQ(current_isa(), isa);
  }
  EXPECT_EQ(current_isa(), available_isas().back());
}

}  // namespace
}  // namespace foresay
