// cli/open_model.h: finding and opening the model that a verb works on.
#pragma once

#include <CLI/App.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/lane.h"
#include "library/open_model.h"

namespace foresay::cli {

/// Options of every verb that opens a model.
struct ModelOptions {
  std::string folder;  ///< empty: the bundled checkpoint
  std::string mtp = "on";
  ContractOverrides contract;
  LaneOptions lane;
};

void add_model_options(CLI::App& app, ModelOptions& options);

/// The program's own file, links resolved; empty when the system does not say.
[[nodiscard]] std::filesystem::path program_file();

/// The folder to open: the one given or the cached one that it names (checkpoint/hub_cache.h), else the bundled
/// tiny-qwen3_5, found relative to the executable. Throws ErrorCode::usage.
[[nodiscard]] std::filesystem::path model_folder(const std::string& given);

/// Opens the model that the options name and says on stderr what was noticed (say_report), also when it fails: the
/// warnings often hold the reason.
[[nodiscard]] std::unique_ptr<OpenModel> open_model(const ModelOptions& options, bool json);

/// A head that was loaded and never drafted (library/silent_head.h): throws, or warns on stderr and gives the reason.
std::string say_silent_head(const OpenModel& open, const ModelOptions& options, const char* verb);

}  // namespace foresay::cli
