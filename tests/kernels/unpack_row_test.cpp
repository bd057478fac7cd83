#include "kernels/unpack_row.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/golden_matrix.h"
#include "kernels/test_matrix.h"

namespace foresay {
namespace {

class UnpackRow : public EveryIsa {};
FORESAY_EVERY_ISA(UnpackRow);

/// Code `i` of a row by the packing rule alone: stream bits i * bits and up, low bit first.
std::uint32_t code_at(const std::byte* row, int bits, int i) {
  std::uint32_t code = 0;
  for (int b = 0; b < bits; ++b) {
    const int at = i * bits + b;
    code |= (static_cast<std::uint32_t>(row[at / 8]) >> (at % 8) & 1u) << b;
  }
  return code;
}

TEST_P(UnpackRow, BitsAreThoseOfTheReferenceAtAnyAddress) {
  for_each_matrix(5, [this](TestMatrix matrix) {
    const auto expected = on_reference([&] { return bits_of(unpack_all(matrix.view())); });
    for (const std::size_t offset : {0u, 1u, 2u, 3u, 5u}) {
      matrix.place(offset);
      ASSERT_EQ(bits_of(unpack_all(matrix.view())), expected) << matrix.describe() << " at offset " << offset;
    }
  });
}

TEST_P(UnpackRow, AffineCodesFollowThePackingRuleWithTwoRoundings) {
  for (const MatrixFormat& format : affine_formats()) {
    const auto matrix = TestMatrix::random({format.type, format.bits, format.group, DType::f32}, 3, 256, 7);
    const WeightView& w = matrix.view();
    const auto values = unpack_all(w);
    const auto row_bytes = static_cast<std::size_t>(w.in * w.bits / 8);
    for (int n = 0; n < w.out; ++n) {
      for (int i = 0; i < w.in; ++i) {
        const auto group = static_cast<std::size_t>(n * (w.in / w.group) + i / w.group);
        float scale = 0, bias = 0;
        std::memcpy(&scale, static_cast<const std::byte*>(w.scales) + 4 * group, 4);
        std::memcpy(&bias, static_cast<const std::byte*>(w.biases) + 4 * group, 4);
        const auto code = code_at(matrix.data().data() + static_cast<std::size_t>(n) * row_bytes, w.bits, i);
        ASSERT_EQ(values[static_cast<std::size_t>(n * w.in + i)], scale * static_cast<float>(code) + bias)
            << matrix.describe();
      }
    }
  }
}

TEST_P(UnpackRow, HalvesKeepZerosSubnormalsInfinitiesAndNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const DType type : {DType::f16, DType::bf16}) {
    std::vector<float> values = {0.0f, -0.0f, 1.0f, -2.0f, infinity, -infinity, NAN, 0.5f, -1.5f, 96.0f};
    const float subnormal = type == DType::f16 ? 0x1p-24f : 0x1p-130f;
    for (int k = 1; k < 16; ++k) values.push_back(static_cast<float>(k) * subnormal);
    const int in = static_cast<int>(values.size());
    const auto stored = OwnedTensor::of(type, {1, in}, values);
    const WeightView w = {.type = weight_type(type), .out = 1, .in = in, .data = stored.bytes.data()};
    const auto unpacked = unpack_all(w);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) {
        EXPECT_TRUE(std::isnan(unpacked[i]));
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(unpacked[i]), std::bit_cast<std::uint32_t>(values[i])) << i;
      }
    }
  }
}

TEST_P(UnpackRow, EveryCodeOfTheFpFormatsHasItsValue) {
  const float magnitudes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (int code = 0; code < 256; ++code) {
    const std::vector<std::byte> codes(32, static_cast<std::byte>(code));
    const std::uint8_t two = 128, one = 0x38;  // 2 as E8M0, 1 as E4M3
    WeightView w = {
        .type = WeightType::mxfp8, .out = 1, .in = 32, .data = codes.data(), .bits = 8, .group = 32, .scales = &two};
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    const double e4m3 =
        (exponent == 0 ? mantissa / 8.0 * 0x1p-6 : (1 + mantissa / 8.0) * std::ldexp(1.0, exponent - 7)) *
        ((code & 128) != 0 ? -1 : 1);
    EXPECT_EQ(unpack_all(w)[7], 2 * e4m3) << code;
    w.bits = 4;
    w.type = WeightType::mxfp4;
    const auto sign = [](int nibble) { return (nibble & 8) != 0 ? -1.0f : 1.0f; };
    EXPECT_EQ(unpack_all(w)[30], 2 * sign(code) * magnitudes[code & 7]) << code;
    EXPECT_EQ(unpack_all(w)[31], 2 * sign(code >> 4) * magnitudes[code >> 4 & 7]) << code;
    w.type = WeightType::nvfp4;
    w.in = w.group = 16;
    w.scales = &one;
    EXPECT_EQ(unpack_all(w)[14], sign(code) * magnitudes[code & 7]) << code;
    w.type = WeightType::mxfp4;  // scales of every size
    const auto scale = static_cast<std::uint8_t>(code);
    const std::vector<std::byte> ones(16, std::byte{0x22});
    w = {.type = WeightType::mxfp4, .out = 1, .in = 32, .data = ones.data(), .bits = 4, .group = 32, .scales = &scale};
    if (code == 255) {
      EXPECT_TRUE(std::isnan(unpack_all(w)[0]));
    } else {
      EXPECT_EQ(unpack_all(w)[0], std::ldexp(1.0, code - 127)) << code;
    }
  }
}

TEST_P(UnpackRow, LargestCodesNegativeScalesAndBadScales) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    const std::vector<std::byte> codes(static_cast<std::size_t>(32 * bits / 8), std::byte{0xff});
    const auto value = [&](float scale, float bias) {
      const WeightView w = {.type = WeightType::affine,
          .out = 1,
          .in = 32,
          .data = codes.data(),
          .bits = bits,
          .group = 32,
          .scale_type = WeightType::f32,
          .scales = &scale,
          .biases = &bias};
      const auto row = unpack_all(w);
      EXPECT_TRUE(std::isnan(row[0]) || row == std::vector<float>(32, row[0]));
      return row[31];
    };
    const auto most = static_cast<float>((1 << bits) - 1);
    EXPECT_EQ(value(1, 0), most);
    EXPECT_EQ(value(-0.5f, 3), -0.5f * most + 3);
    EXPECT_EQ(value(std::numeric_limits<float>::max(), 0), std::numeric_limits<float>::infinity());
    EXPECT_EQ(value(-1, std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(value(NAN, 0)));
    EXPECT_TRUE(std::isnan(value(0, NAN)));
  }
}

TEST_P(UnpackRow, APartOfTheRowsIsThoseRows) {
  for_each_matrix(5, [](const TestMatrix& matrix) {
    const WeightView& w = matrix.view();
    const auto all = unpack_all(w);
    const auto part = unpack_all(rows_of(w, 2, 3));
    EXPECT_EQ(bits_of(part), bits_of({all.begin() + 2 * w.in, all.end()})) << matrix.describe();
  });
}

TEST_P(UnpackRow, GoldensOfMlxAreReproducedExactly) {
  for (const MatrixFormat& format : packed_formats()) {
    const auto golden = GoldenMatrix::open(format);
    EXPECT_EQ(unpack_all(golden.view), golden.tensor("dequantized")) << format.bits << " bits, group " << format.group;
  }
}

}  // namespace
}  // namespace foresay
