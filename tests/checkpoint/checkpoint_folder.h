// checkpoint/checkpoint_folder.h: a checkpoint folder that a test writes, damages and opens.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/expect_error.h"
#include "fixtures/tiny_checkpoint.h"

namespace foresay {

inline constexpr std::size_t kHeadTensors = 15;  // specs: dense head, one layer, not quantised
inline const std::string kIndex = "model.safetensors.index.json";

/// One folder per test, opened with a report of its own.
class CheckpointFolder : public ::testing::Test {
 protected:
  Checkpoint open() {
    report_ = Report();
    return Checkpoint::open(folder_, report_);
  }
  void expect_refused(ErrorCode code, const std::vector<std::string>& parts) {
    expect_error(code, parts, [&] { (void)open(); });
  }
  [[nodiscard]] static int count(const std::vector<std::string>& lines, const std::string& part) {
    return static_cast<int>(std::count_if(
        lines.begin(), lines.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; }));
  }
  TensorMap& head_of(TensorMap& tensors) {
    std::erase_if(tensors, [](const auto& tensor) { return head_relative_name(tensor.first).empty(); });
    return tensors;
  }

  TempDir dir_;
  std::filesystem::path folder_ = dir_.path() / "model";
  Report report_;
};

inline TinyOptions sharded() {
  auto options = tiny();
  options.shards = 2;
  return options;
}

}  // namespace foresay
