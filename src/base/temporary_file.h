// base/temporary_file.h: a file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace foresay {

/// A file under a temporary name beside its target; removed unless publish() renamed it, so a reader never sees half of
/// one. Every failure throws ErrorCode::capacity; `area` is the message's "[area]".
class TemporaryFile {
 public:
  TemporaryFile(std::filesystem::path target, std::string_view area);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  void write(const void* data, std::size_t bytes);
  void publish();  ///< the last call

 private:
  [[noreturn]] void refuse(const char* action);

  std::filesystem::path target_, path_;
  std::string area_;
  std::FILE* file_ = nullptr;
  bool published_ = false;
};

}  // namespace foresay
