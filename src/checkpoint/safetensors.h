// checkpoint/safetensors.h: reading and writing safetensors files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/temporary_file.h"
#include "checkpoint/tensor_view.h"

namespace foresay {

/// A mapped safetensors file. The mapping lives as long as any view of it.
/// Format: 8 bytes little-endian header length, JSON header {name: {dtype, shape, data_offsets}}, data.
class SafetensorsFile {
 public:
  /// Maps the file and checks its header: length within the file, valid JSON, known dtypes, shapes that agree with the
  /// offsets, offsets inside the file and without overlap. Throws ErrorCode::checkpoint naming the file and the tensor.
  /// `wanted`, when given, chooses tensors by name; the others are checked too but only listed in left_out().
  /// Cost: reads the header. Tensors stay where they lie, which may be misaligned for their dtype: MLX does not pad its
  /// headers, so that is often every tensor of a file.
  [[nodiscard]] static SafetensorsFile open(
      const std::filesystem::path& path, const std::function<bool(const std::string&)>& wanted = nullptr);

  [[nodiscard]] const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::map<std::string, TensorView> tensors_;
  std::vector<std::string> left_out_;
  std::map<std::string, std::string> metadata_;
};

/// A tensor to be written. `data` is borrowed until write_safetensors returns.
struct TensorToWrite {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;
  /// Where data is null: makes the bytes of the tensor from `offset` on, a piece at a time and in order. Pieces begin
  /// at multiples of 8, so that a file larger than memory can be written.
  std::function<void(std::span<std::byte> piece, std::uint64_t offset)> make = {};

  [[nodiscard]] std::uint64_t bytes() const;
};

/// Writes a safetensors file piece by piece, for tensors too big to hold. Nothing is under `path` before finish().
///   layout  the tensors in order, no wider elements after narrower ones; their data is not read
/// Throws ErrorCode::capacity when the disk refuses.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, const std::vector<TensorToWrite>& layout,
      const std::map<std::string, std::string>& metadata = {});
  void append(const void* data, std::size_t bytes);  ///< the next bytes of the data, tensors one after another
  void finish();                                     ///< once all were appended

 private:
  TemporaryFile file_;
  std::uint64_t outstanding_ = 0;
};

/// Writes a safetensors file through a temporary name beside it, so that a reader never sees half of one.
/// Throws ErrorCode::capacity when the disk refuses.
void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors,
    const std::map<std::string, std::string>& metadata = {});

}  // namespace foresay
