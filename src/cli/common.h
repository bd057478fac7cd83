// cli/common.h: what the verbs share: finding and opening a model, reading ids, writing results.
#pragma once

#include <CLI/App.hpp>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/report.h"
#include "base/token.h"
#include "checkpoint/checkpoint.h"
#include "model/load.h"

namespace foresay::cli {

/// Options of every verb that opens a model.
struct ModelOptions {
  std::string folder;  ///< empty: the bundled checkpoint
  std::string mtp = "on";
  int threads = 0;
  std::string activations = "float";
};

void add_model_options(CLI::App& app, ModelOptions& options);

/// The folder to open: the one given, else the bundled tiny-qwen3_5, found relative to the executable. Throws
/// ErrorCode::usage.
[[nodiscard]] std::filesystem::path model_folder(const std::string& given);
[[nodiscard]] MtpMode mtp_mode(const std::string& name);

/// An opened model with everything that keeps it alive. Not movable: members refer to each other.
struct OpenModel {
  explicit OpenModel(const ModelOptions& options);
  OpenModel(const OpenModel&) = delete;
  OpenModel& operator=(const OpenModel&) = delete;

  std::filesystem::path folder;
  Report report;
  Checkpoint checkpoint;
  std::unique_ptr<Ops> ops;
  LoadedModel loaded;
};

/// Warnings and notes of a load, one line each, on stderr.
void print_report(const Report& report);

/// "1,2,3" or "1 2 3" -> ids. Throws ErrorCode::usage naming the option and the piece that is no id.
[[nodiscard]] std::vector<TokenId> parse_ids(const std::string& option, std::string_view text);
/// The value of an option, with "-" standing for all of stdin.
[[nodiscard]] std::string value_or_stdin(const std::string& value);

/// Writes to stdout at once, whole. Throws ErrorCode::capacity when stdout is closed or full.
void write_out(std::string_view text);

/// Set by Ctrl-C after watch_interrupts(); a second Ctrl-C ends the process at once.
[[nodiscard]] const std::atomic<bool>& interrupted();
void watch_interrupts();

}  // namespace foresay::cli
