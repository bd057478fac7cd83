#include "checkpoint/tensor_view.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "checkpoint/expect_error.h"
#include "fixtures/owned_tensor.h"

namespace foresay {
namespace {

OwnedTensor of_halves(DType dtype, std::vector<std::uint16_t> bits) {
  OwnedTensor tensor{dtype, {static_cast<std::int64_t>(bits.size())}, std::vector<std::byte>(2 * bits.size())};
  std::memcpy(tensor.bytes.data(), bits.data(), tensor.bytes.size());
  return tensor;
}

TEST(TensorView, F16CoversZerosSubnormalsInfinitiesAndNan) {
  const auto values =
      of_halves(DType::f16, {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0xc000, 0x7bff, 0x7c00, 0xfc00, 0x7e00})
          .to_float();
  const std::vector<float> expected = {0.0f, -0.0f, 0x1p-24f, -1023 * 0x1p-24f, 0x1p-14f, 1.0f, -2.0f, 65504.0f,
      std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(values[i], expected[i]) << i;
  EXPECT_TRUE(std::signbit(values[1]));
  EXPECT_TRUE(std::isnan(values[10]));
}

TEST(TensorView, EveryF16ValueSurvivesARoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const auto value = of_halves(DType::f16, {half}).to_float();
    if (std::isnan(value[0])) continue;
    std::uint16_t back = 0;
    std::memcpy(&back, OwnedTensor::of(DType::f16, {1}, value).bytes.data(), 2);
    ASSERT_EQ(back, half);
  }
}

TEST(TensorView, Bf16IsTheUpperHalfOfAFloat) {
  const auto values = of_halves(DType::bf16, {0x3f80, 0xc000, 0x0001, 0x7f80}).to_float();
  EXPECT_EQ(values, (std::vector<float>{1.0f, -2.0f, std::bit_cast<float>(0x00010000u), INFINITY}));
}

TEST(TensorView, F64AndF32) {
  const double wide[2] = {0.1, -3.0};
  const TensorView view{"x", "f", DType::f64, {2}, reinterpret_cast<const std::byte*>(wide), sizeof(wide), nullptr};
  EXPECT_EQ(view.to_float(), (std::vector<float>{0.1f, -3.0f}));
  const std::vector<float> narrow = {1.5f, -0.25f};
  EXPECT_EQ(OwnedTensor::of(DType::f32, {2}, narrow).to_float(), narrow);
  EXPECT_TRUE(OwnedTensor::of(DType::f32, {0}, {}).to_float().empty());
}

TEST(TensorView, IntegersAreNoFloats) {
  const std::vector<std::uint32_t> words = {1};
  expect_error(ErrorCode::checkpoint, {"w.weight", "U32"},
      [&] { (void)OwnedTensor::of_words({1}, words).view("w.weight").to_float(); });
}

TEST(TensorView, NamesOfTypesReadBack) {
  for (int i = 0; i <= static_cast<int>(DType::f8_e8m0); ++i) {
    const auto type = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name_of(type)), type);
  }
  EXPECT_EQ(dtype_from_name("bf16"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
  EXPECT_EQ(describe_shape({4096, 256}), "[4096, 256]");
  EXPECT_EQ(describe_shape({}), "[]");
}

}  // namespace
}  // namespace foresay
