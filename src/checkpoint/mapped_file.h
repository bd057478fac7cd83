// checkpoint/mapped_file.h: a read-only mapping of a regular file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>

namespace foresay {

/// Bytes of a whole file, mapped read-only. Immutable, so any thread may read it.
class MappedFile {
 public:
  /// Never blocks: folders, pipes and devices are refused before anything is read.
  /// Throws ErrorCode::checkpoint naming the file; `area` is the message's "[area]".
  [[nodiscard]] static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path, std::string_view area);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] const std::byte* data() const { return data_; }  ///< page-aligned; null when the file is empty
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size) {}

  const std::byte* data_;
  std::size_t size_;
};

}  // namespace foresay
