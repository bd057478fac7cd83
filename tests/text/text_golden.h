// tests/text/text_golden.h: the golden files of tests/golden/text, and the bundled tokenizer.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "text/tokenizer.h"

namespace foresay {

inline std::filesystem::path tiny_model() {
  return std::filesystem::path(FORESAY_MODELS) / "tiny-qwen3_5";
}

/// Loaded once: it is immutable.
inline const Tokenizer& tiny_tokenizer() {
  static const auto tokenizer = Tokenizer::load(tiny_model());
  return tokenizer;
}

/// Made by tools/make_text_golden.py; the file names the versions.
inline nlohmann::ordered_json text_golden(const std::string& name) {
  std::ifstream file(std::filesystem::path(FORESAY_TEST_DATA) / "text" / name);
  return nlohmann::ordered_json::parse(file);
}

/// A folder of its own for one test, removed at the end.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("foresay_text_" + name + "_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace foresay
