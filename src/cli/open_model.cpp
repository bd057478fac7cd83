#include "cli/open_model.h"

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "checkpoint/hub_cache.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "library/silent_head.h"

#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

namespace foresay::cli {
namespace {

namespace fs = std::filesystem;

/// One value of the wiring, which then beats every file.
template <typename T>
void add_wiring_option(CLI::App& app, const char* name, std::optional<T>& value, const char* what) {
  const std::string choices(contract_choices<T>());
  app.add_option_function<std::string>(
         name,
         [&value, name, choices](const std::string& text) {
           value = contract_value<T>(text);
           if (!value) throw CLI::ValidationError(name, mismatch(choices, text));
         },
         fmt::format("{}: {}", what, choices))
      ->group("Wiring of the head");
}

}  // namespace

void add_model_options(CLI::App& app, ModelOptions& options) {
  app.add_option("MODEL", options.folder,
      "Checkpoint folder (Hugging Face or MLX layout), or org/name[@revision] of the local Hugging Face cache; "
      "default: "
      "the bundled tiny-qwen3_5");
  app.add_option(
         "--mtp", options.mtp, "The MTP head: on (an unusable head is an error), auto (it is a warning), off, required")
      ->check(one_of({"on", "auto", "off", "required"}))
      ->capture_default_str();
  ContractOverrides& wiring = options.contract;
  add_wiring_option(app, "--base-hidden", wiring.base_hidden, "What the trunk hands to the head");
  add_wiring_option(app, "--recycled-hidden", wiring.recycled_hidden, "What the head hands to its next step");
  add_wiring_option(app, "--concat-order", wiring.concat_order, "What the fusion projection reads first");
  add_wiring_option(app, "--position-mode", wiring.position_mode, "Where the head's positions come from");
  add_wiring_option(app, "--head-norms", wiring.head_norms, "How the head's norm gains are stored");
  add_wiring_option(app, "--head-packing", wiring.head_packing, "How the head's matrices are kept in memory");
  add_lane_options(app, options.lane);
}

fs::path program_file() {
  std::error_code ignored;
#if defined(__APPLE__)
  char path[4096];
  std::uint32_t size = sizeof path;
  return _NSGetExecutablePath(path, &size) == 0 ? fs::canonical(path, ignored) : fs::path();
#else
  return fs::read_symlink("/proc/self/exe", ignored);
#endif
}

fs::path model_folder(const std::string& given) {
  if (!given.empty()) return resolve_checkpoint(given);
  const fs::path program = program_file().parent_path();
  std::error_code ignored;
  for (const char* place : {"../../models/tiny-qwen3_5", "../share/foresay/models/tiny-qwen3_5"}) {
    const fs::path folder = (program / place).lexically_normal();
    if (fs::exists(folder / "config.json", ignored)) return folder;
  }
  fail(ErrorCode::usage,
      "no MODEL was given, and the bundled tiny-qwen3_5 was not found from {} (../../models, ../share/foresay/models); "
      "give a checkpoint folder",
      program.string());
}

std::unique_ptr<OpenModel> open_model(const ModelOptions& options, bool json) {
  Report report;
  const OpenOptions open = {.folder = model_folder(options.folder),
      .mtp = mtp_mode(options.mtp),
      .contract = options.contract,
      .lane = options.lane};
  try {
    auto model = std::make_unique<OpenModel>(open, report);
    say_report(report, json);
    return model;
  } catch (const Error&) {
    say_report(report, /*json=*/true);
    throw;
  }
}

std::string say_silent_head(const OpenModel& open, const ModelOptions& options, const char* verb) {
  std::string reason = silent_head(open, mtp_mode(options.mtp), verb);
  say(fmt::format("warning: {}\n", silent_head_warning(reason)));
  return reason;
}

}  // namespace foresay::cli
