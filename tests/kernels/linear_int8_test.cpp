#include "kernels/linear_int8.h"

#include <cmath>
#include <limits>

#include "kernels/elements.h"
#include "kernels/golden_matrix.h"
#include "kernels/test_matrix.h"

namespace foresay {
namespace {

class LinearInt8 : public EveryIsa {};
FORESAY_EVERY_ISA(LinearInt8);

constexpr int kOut = 37;       // two tiles and a rest
constexpr int kMostRows = 70;  // more than a block of rows

/// Rows and the memory behind them.
struct Quantised {
  std::vector<std::int8_t> codes;
  std::vector<float> scales, sums;
  Int8Rows rows;

  Quantised(const std::vector<float>& x, int count, int in, Int8Order order)
      : codes(static_cast<std::size_t>(count) * static_cast<std::size_t>(in), 77),
        scales(static_cast<std::size_t>(count) * int8_blocks(in), -7.0f),
        sums(static_cast<std::size_t>(count) * int8_sums(in), -7.0f) {
    for (int r = 0; r < count; ++r) {
      const auto at = static_cast<std::size_t>(r);
      quantise_row(x.data() + r * in, in, order, codes.data() + r * in, scales.data() + at * int8_blocks(in),
          sums.data() + at * int8_sums(in));
    }
    rows = {order, count, in, codes.data(), scales.data(), sums.data()};
  }
  Quantised(const Quantised&) = delete;

  /// Code of input i of row r, wherever the order put it.
  [[nodiscard]] int code(int r, int i) const {
    const std::int8_t* row = codes.data() + r * rows.in;
    if (rows.order == Int8Order::natural) return row[i];
    return row[i / 8 * 8 + i % 2 * 4 + i % 8 / 2];
  }
  [[nodiscard]] float scale(int r, int i) const {
    return scales[static_cast<std::size_t>(r) * int8_blocks(rows.in) + static_cast<std::size_t>(i / 64)];
  }
};

std::vector<float> run(const std::vector<float>& x, int rows, const WeightView& w, std::vector<int> cuts = {},
    const int* which = nullptr) {
  const Quantised quantised(x, rows, w.in, int8_order(w));
  std::vector<float> y(static_cast<std::size_t>(rows) * static_cast<std::size_t>(w.out), -7.0f);
  std::vector<float> scratch(int8_scratch(w) / sizeof(float) + 1);
  int first = 0;
  cuts.push_back(w.out);
  for (const int last : cuts) {
    linear_int8(quantised.rows, w, which, y.data(), first, last, reinterpret_cast<std::byte*>(scratch.data()));
    first = last;
  }
  return y;
}

std::vector<float> first_rows(const std::vector<float>& values, int width, int first, int count) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first) * width;
  return {begin, begin + static_cast<std::ptrdiff_t>(count) * width};
}

/// Every format that has integer products, at one to five blocks, so that pairs of blocks are whole and cut.
template <typename Visit>
void for_each_format(Visit visit) {
  std::uint64_t seed = 500;
  for (const MatrixFormat& format : packed_formats()) {
    for (const int in : {64, 128, 192, 320, 1088}) {
      if (format.type != WeightType::affine && format.type != WeightType::mxfp4) continue;
      if (in % format.group == 0) visit(TestMatrix::random(format, kOut, in, seed += 10));
    }
  }
}

std::vector<float> activations(const WeightView& w, float scale = 1) {
  return random_floats(static_cast<std::size_t>(kMostRows) * static_cast<std::size_t>(w.in), 3, scale);
}

TEST(QuantiseRow, TakesOnlyWholeBlocksOfAffineMatrices) {
  EXPECT_TRUE(takes_int8(TestMatrix::random({WeightType::affine, 4, 64}, 1, 192, 1).view()));
  EXPECT_FALSE(takes_int8(TestMatrix::random({WeightType::affine, 4, 32}, 1, 96, 1).view()));
  EXPECT_FALSE(takes_int8(TestMatrix::random({.type = WeightType::bf16}, 1, 192, 1).view()));
}

TEST_P(LinearInt8, ActivationsAreRoundedToTheNearestCode) {
  for (const Int8Order order : {Int8Order::natural, Int8Order::nibbles}) {
    for (const int in : {64, 128, 192, 320}) {
      auto x = random_floats(static_cast<std::size_t>(in) * 2, 4);
      for (int i = 0; i < 64; ++i) x[static_cast<std::size_t>(i)] *= 1e-3f;  // a block of another size
      const Quantised q(x, 2, in, order);
      for (int r = 0; r < 2; ++r) {
        for (int b = 0; b < in / 64; ++b) {
          float most = 0, total[2] = {};
          for (int i = 64 * b; i < 64 * b + 64; ++i)
            most = std::max(most, std::abs(x[static_cast<std::size_t>(r * in + i)]));
          ASSERT_EQ(q.scale(r, 64 * b), most / 127.0f);
          for (int i = 64 * b; i < 64 * b + 64; ++i) {
            const float inverse = 127.0f / most;
            ASSERT_EQ(
                q.code(r, i), static_cast<int>(std::nearbyint(x[static_cast<std::size_t>(r * in + i)] * inverse)));
            total[i % 64 / 32] += static_cast<float>(q.code(r, i));
          }
          const float* sums = q.sums.data() + static_cast<std::size_t>(r) * int8_sums(in) + 3 * b;
          ASSERT_EQ(sums[0], q.scale(r, 64 * b) * (total[0] + total[1]));
          ASSERT_EQ(sums[1], q.scale(r, 64 * b) * total[0]);
          ASSERT_EQ(sums[2], q.scale(r, 64 * b) * total[1]);
        }
      }
    }
  }
}

TEST_P(LinearInt8, BlocksWithoutSizeAndBlocksThatAreBadAreTold) {
  for (const float tiny : {0.0f, -0.0f, 1e-40f, 1e-35f}) {
    const std::vector<float> x(64, tiny);
    const Quantised q(x, 1, 64, Int8Order::natural);
    EXPECT_EQ(q.scale(0, 0), 0);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(q.code(0, i), 0);
  }
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    for (const int at : {0, 17, 63}) {
      std::vector<float> x(128, 1.0f);
      x[static_cast<std::size_t>(at)] = bad;
      const Quantised q(x, 1, 128, Int8Order::natural);
      EXPECT_TRUE(std::isnan(q.scale(0, 0)));
      EXPECT_EQ(q.code(0, 5), 0);
      EXPECT_EQ(q.scale(0, 64), 1.0f / 127.0f);
    }
  }
}

TEST_P(LinearInt8, BitsAreThoseOfTheReferenceForAnyNumberOfRows) {
  for_each_format([this](const TestMatrix& matrix) {
    const WeightView& w = matrix.view();
    const auto x = activations(w);
    const auto expected = on_reference([&] { return run(x, kMostRows, w); });
    for (const int rows : {0, 1, 2, 3, 4, 5, 6, 7, 8, 17, kMostRows}) {
      ASSERT_EQ(bits_of(run(first_rows(x, w.in, 0, rows), rows, w)), bits_of(first_rows(expected, kOut, 0, rows)))
          << matrix.describe() << ", " << rows << " rows";
    }
    for (const int first : {1, 3, 64, 67}) {
      ASSERT_EQ(bits_of(run(first_rows(x, w.in, first, 3), 3, w)), bits_of(first_rows(expected, kOut, first, 3)))
          << matrix.describe() << ", rows " << first << " and on";
    }
  });
}

TEST_P(LinearInt8, OutputsDoNotDependOnHowTheyAreSharedOut) {
  for_each_format([](const TestMatrix& matrix) {
    const auto x = first_rows(activations(matrix.view()), matrix.view().in, 0, 5);
    const auto expected = bits_of(run(x, 5, matrix.view()));
    for (const auto& cuts : std::vector<std::vector<int>>{{1}, {16}, {1, 2, 3, 4}, {0, 20, 36}}) {
      ASSERT_EQ(bits_of(run(x, 5, matrix.view(), cuts)), expected) << matrix.describe();
    }
  });
}

TEST_P(LinearInt8, OutputsMayBeAnyRowsOfTheMatrix) {
  for_each_format([](const TestMatrix& matrix) {
    const auto x = first_rows(activations(matrix.view()), matrix.view().in, 0, 5);
    const auto all = run(x, 5, matrix.view());
    std::vector<int> which;
    for (int n = 0; n < kOut; ++n) which.push_back(7 * n % kOut);
    const auto some = run(x, 5, matrix.view(), {3, 20}, which.data());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t from = i / kOut * kOut + static_cast<std::size_t>(which[i % kOut]);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(some[i]), std::bit_cast<std::uint32_t>(all[from])) << matrix.describe();
    }
  });
}

TEST_P(LinearInt8, AnyAddressOfTheMatrixGivesTheSameBits) {
  for_each_format([](TestMatrix matrix) {
    const auto x = first_rows(activations(matrix.view()), matrix.view().in, 0, 5);
    const auto expected = bits_of(run(x, 5, matrix.view()));
    for (const std::size_t offset : {1u, 2u, 3u, 6u}) {
      matrix.place(offset);
      ASSERT_EQ(bits_of(run(x, 5, matrix.view())), expected) << matrix.describe() << " at offset " << offset;
    }
  });
}

/// What a code of 0 stands for, for input i of row n.
double offset(const WeightView& w, int n, int i) {
  const auto group = static_cast<std::size_t>(n * (w.in / w.group) + i / w.group);
  if (w.type == WeightType::affine) return kernels::element(w.biases, w.scale_type, group);
  return -0.5 * kMxfp4Zero * kernels::fp_scale(w, group);
}

// Integers are exact. What is rounded: two products of scales and two additions per unit of at least 32 inputs, each to
// 2^-24 of the magnitudes at hand, which are those of codes and offsets before they cancel.
TEST_P(LinearInt8, IsTheProductOfWhatCodesStandFor) {
  for_each_format([](const TestMatrix& matrix) {
    const WeightView& w = matrix.view();
    const auto x = first_rows(activations(w), w.in, 0, 5);
    const auto y = run(x, 5, w);
    const Quantised q(x, 5, w.in, int8_order(w));
    const auto weights = unpack_all(w);
    for (int r = 0; r < 5; ++r) {
      for (int n = 0; n < kOut; ++n) {
        double sum = 0, magnitude = 0;
        for (int i = 0; i < w.in; ++i) {
          const double value = static_cast<double>(q.scale(r, i)) * q.code(r, i);
          sum += value * weights[static_cast<std::size_t>(n * w.in + i)];
          magnitude += std::abs(value) *
                       (std::abs(weights[static_cast<std::size_t>(n * w.in + i)]) + 2 * std::abs(offset(w, n, i)));
        }
        ASSERT_NEAR(y[static_cast<std::size_t>(r * kOut + n)], sum, (w.in / 16 + 4) * 0x1p-24 * magnitude)
            << matrix.describe();
      }
    }
  });
}

// 8-bit products of adjacent bytes are summed in 16 bits on AVX2: the largest codes of either sign must not saturate.
TEST_P(LinearInt8, ExtremeCodesDoNotSaturate) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int code : {0, (1 << bits) - 1}) {
      for (const float sign : {1.0f, -1.0f}) {
        const int in = 256;
        std::vector<std::uint8_t> codes(static_cast<std::size_t>(in * bits / 8), code == 0 ? 0 : 0xff);
        const std::vector<float> scales(4, 1.0f), biases(4, 0.0f);
        const WeightView w = {.type = WeightType::affine,
            .out = 1,
            .in = in,
            .data = codes.data(),
            .bits = bits,
            .group = 64,
            .scale_type = WeightType::f32,
            .scales = scales.data(),
            .biases = biases.data()};
        const auto y = run(std::vector<float>(static_cast<std::size_t>(in), sign * 127.0f), 1, w);
        EXPECT_EQ(y[0], sign * 127.0f * static_cast<float>(code * in)) << bits << " bits, code " << code;
      }
    }
  }
}

TEST_P(LinearInt8, InfinitiesAndNanReachTheirRowAndNoOther) {
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    for (const int bits : {4, 8, 6}) {
      const auto matrix = TestMatrix::random({WeightType::affine, bits, 64}, kOut, 192, 5);
      auto x = random_floats(5 * 192, 6);
      x[192 + 100] = bad;
      const auto y = run(x, 5, matrix.view());
      for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / kOut == 1) << i;
    }
  }
}

// Each activation is off by at most half a step of its block, and steps are 1/127 of the block's largest: the product
// is off by no more than sum |w| * step / 2, and the goldens themselves by 1e-4.
TEST_P(LinearInt8, GoldenProductsOfMlxPackingsAreMetWithinTheStepsOfActivations) {
  for (const MatrixFormat& format : packed_formats()) {
    const auto golden = GoldenMatrix::open(format);
    const WeightView& w = golden.view;
    if (!takes_int8(w)) continue;
    const auto x = golden.tensor("x"), expected = golden.tensor("y");
    const auto y = run(x, 5, w);
    const Quantised q(x, 5, w.in, int8_order(w));
    const auto weights = unpack_all(w);
    ASSERT_EQ(y.size(), expected.size());
    for (int r = 0; r < 5; ++r) {
      for (int n = 0; n < w.out; ++n) {
        double bound = 2e-4;
        for (int i = 0; i < w.in; ++i) {
          bound += 0.5 * q.scale(r, i) * std::abs(weights[static_cast<std::size_t>(n * w.in + i)]);
        }
        const auto at = static_cast<std::size_t>(r * w.out + n);
        ASSERT_NEAR(y[at], expected[at], bound) << format.bits << " bits, group " << format.group;
      }
    }
  }
}

}  // namespace
}  // namespace foresay
