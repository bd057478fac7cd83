#include "checkpoint/tensor_view.h"

#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace foresay {
namespace {

struct DTypeRow {
  DType type;
  std::string_view name;
  std::size_t bytes;
};

// In the order of the enum, so that a type is its own row number.
constexpr std::array kTypes{
    DTypeRow{DType::f64, "F64", 8},
    DTypeRow{DType::f32, "F32", 4},
    DTypeRow{DType::f16, "F16", 2},
    DTypeRow{DType::bf16, "BF16", 2},
    DTypeRow{DType::i64, "I64", 8},
    DTypeRow{DType::i32, "I32", 4},
    DTypeRow{DType::u32, "U32", 4},
    DTypeRow{DType::i16, "I16", 2},
    DTypeRow{DType::u16, "U16", 2},
    DTypeRow{DType::i8, "I8", 1},
    DTypeRow{DType::u8, "U8", 1},
    DTypeRow{DType::boolean, "BOOL", 1},
    DTypeRow{DType::f8_e4m3, "F8_E4M3", 1},
    DTypeRow{DType::f8_e5m2, "F8_E5M2", 1},
    DTypeRow{DType::f8_e8m0, "F8_E8M0", 1},
};

const DTypeRow& row_of(DType type) {
  return kTypes[static_cast<std::size_t>(type)];
}

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

float float_from_f16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) {  // zero and subnormals: mantissa * 2^-24, exact in float32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));  // infinity, NaN
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));           // 112: bias 127 - 15
}

}  // namespace

std::size_t size_of(DType type) {
  return row_of(type).bytes;
}

std::string_view name_of(DType type) {
  return row_of(type).name;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const auto& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

std::int64_t TensorView::elements() const {
  std::int64_t count = 1;
  for (const auto extent : shape) count *= extent;
  return count;
}

std::vector<float> TensorView::to_float() const {
  const auto count = static_cast<std::size_t>(elements());
  if (bytes != count * size_of(dtype)) {
    fail(ErrorCode::checkpoint, "[tensor] {} in {}: expected {} bytes for {} {}, found {}", name, file,
        count * size_of(dtype), name_of(dtype), describe_shape(shape), bytes);
  }
  std::vector<float> values(count);
  switch (dtype) {
    case DType::f64:
      for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(load<double>(data + 8 * i));
      return values;
    case DType::f32:
      if (count != 0) std::memcpy(values.data(), data, bytes);
      return values;
    case DType::f16:
      for (std::size_t i = 0; i < count; ++i) values[i] = float_from_f16(load<std::uint16_t>(data + 2 * i));
      return values;
    case DType::bf16:
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(data + 2 * i)) << 16);
      }
      return values;
    case DType::i64:
    case DType::i32:
    case DType::u32:
    case DType::i16:
    case DType::u16:
    case DType::i8:
    case DType::u8:
    case DType::boolean:
    case DType::f8_e4m3:
    case DType::f8_e5m2:
    case DType::f8_e8m0:
      break;
  }
  fail(ErrorCode::checkpoint,
      "[tensor] {} in {}: expected F64, F32, F16 or BF16 values, found {}; this tensor has to be stored in a floating "
      "type",
      name, file, name_of(dtype));
}

TensorView TensorView::part(std::int64_t first, std::int64_t count) const {
  TensorView view = *this;
  const std::size_t entry = bytes / static_cast<std::size_t>(std::max<std::int64_t>(shape.front(), 1));
  view.shape.front() = count;
  view.data += static_cast<std::size_t>(first) * entry;
  view.bytes = static_cast<std::size_t>(count) * entry;
  return view;
}

std::string describe_shape(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace foresay
