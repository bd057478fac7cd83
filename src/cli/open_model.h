// cli/open_model.h: finding and opening the model that a verb works on.
#pragma once

#include <CLI/App.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "base/report.h"
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

}  // namespace foresay::cli
