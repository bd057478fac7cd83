// checkpoint/tensor_view.h: a named tensor as a file stores it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foresay {

/// Element types that safetensors files of our families hold.
enum class DType { f64, f32, f16, bf16, i64, i32, u32, i16, u16, i8, u8, boolean, f8_e4m3, f8_e5m2, f8_e8m0 };

[[nodiscard]] std::size_t size_of(DType type);       ///< bytes per element
[[nodiscard]] std::string_view name_of(DType type);  ///< as written in a safetensors header: "BF16"
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name);  ///< empty when unknown
[[nodiscard]] inline bool is_float(DType type) {
  return type == DType::f64 || type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

/// A view of one tensor. `owner` keeps the bytes alive (a mapped file).
struct TensorView {
  std::string name;  ///< as in the file
  std::string file;  ///< path of that file, for messages
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  const std::byte* data = nullptr;  ///< row-major, at any address: read elements with memcpy, not through a cast
  std::size_t bytes = 0;
  std::shared_ptr<const void> owner;

  [[nodiscard]] std::int64_t elements() const;
  /// All values as float32, copied. For vectors and small tensors; floating dtypes only (throws ErrorCode::checkpoint).
  [[nodiscard]] std::vector<float> to_float() const;
  /// Entries [first, first + count) along the first axis: the same bytes. The tensor has whole bytes per entry.
  [[nodiscard]] TensorView part(std::int64_t first, std::int64_t count) const;
};

/// "[4096, 256]"
[[nodiscard]] std::string describe_shape(const std::vector<std::int64_t>& shape);

}  // namespace foresay
