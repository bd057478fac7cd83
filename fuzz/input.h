// fuzz/input.h: what targets share: a folder for their files, and the promise that every reader keeps.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fuzz/targets.h"

namespace foresay::fuzz {

/// A folder of this process alone, in memory where the machine has such a place.
class Folder {
 public:
  explicit Folder(std::string_view name);
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void write(const char* file, Bytes content) const;
  void write(const char* file, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

/// Two tensors as a safetensors file: embed_tokens and, with `head`, an MTP norm.
[[nodiscard]] std::string small_weights(bool head);

[[noreturn]] inline void broken(const char* promise, const char* what) {
  std::fprintf(stderr, "broken promise: %s: %s\n", promise, what);
  std::abort();
}

[[nodiscard]] bool is_utf8(std::string_view text);

/// Runs `read`; what it throws has to be an Error as fuzz::Target says.
template <typename Read>
void expect_read_or_error(Read read) {
  try {
    read();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (error.code() == ErrorCode::internal) broken("an input is no bug of the reader", error.what());
    if (message.empty()) broken("an error says something", "");
    if (!is_utf8(message)) broken("a message is UTF-8", error.what());
  }
}

}  // namespace foresay::fuzz
