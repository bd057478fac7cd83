// cli/logits_file.h: the logits of a run over a text, as `eval --text --out` writes them and `--against` reads them.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "decode/score/log_row.h"
#include "foresay/token.h"

namespace foresay::cli {

/// Writes ids i32 [N] and logits f32 [N, V], a row at a time; lane and window are metadata. Nothing is at the path
/// before finish(). Throws ErrorCode::capacity.
class LogitsWriter {
 public:
  LogitsWriter(
      const std::filesystem::path& path, std::span<const TokenId> ids, int vocab, int window, const std::string& lane);
  void add(std::span<const float> row) { writer_.append(row.data(), row.size_bytes()); }
  void finish() { writer_.finish(); }

 private:
  SafetensorsWriter writer_;
};

/// Such a file, mapped; rows are copied out one by one, since a mapped row may be misaligned.
class ReferenceLogits {
 public:
  /// Throws ErrorCode::usage where there is no such file or it is none of those, ErrorCode::checkpoint where it is
  /// damaged.
  explicit ReferenceLogits(const std::filesystem::path& path);

  [[nodiscard]] int window() const { return window_; }
  [[nodiscard]] const std::string& lane() const { return lane_; }
  /// Throws ErrorCode::usage unless the file is about these ids and a vocabulary of this size.
  void expect(std::span<const TokenId> ids, int vocab) const;
  /// Valid until the next call. Throws ErrorCode::checkpoint for a row that is not finite.
  [[nodiscard]] LogRow row(std::size_t token);

 private:
  std::string path_, lane_;
  SafetensorsFile file_;
  const TensorView* logits_ = nullptr;
  std::vector<TokenId> ids_;
  int window_ = 0;
  std::vector<float> row_;
};

}  // namespace foresay::cli
