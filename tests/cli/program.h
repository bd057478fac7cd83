// cli/program.h: the built program, run as a user would, and what every run of it must keep to.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fixtures/process.h"
#include "fixtures/tiny_checkpoint.h"
#include "text/detokenizer.h"

namespace foresay {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

inline const std::string kBundled = FORESAY_MODELS "/tiny-qwen3_5";
inline const std::string kPrompt = "def read_config(path):";

inline std::string joined(const Arguments& arguments) {
  std::string text;
  for (const auto& argument : arguments) text += argument.substr(0, 60) + " ";
  return text;
}

/// Runs foresay; `command` says everything but program and arguments. It must never crash or time out, and everything
/// it says is UTF-8 as long as its arguments are. Verbs run on one thread unless told otherwise: on a machine that runs
/// many tests at once, threads that wait for each other's cores take many times as long.
inline Outcome foresay(const Arguments& arguments, Command command = {}) {
  if (command.program.empty()) command.program = FORESAY_PROGRAM;
  command.arguments = arguments;
  const auto given = [&](const char* option) { return std::ranges::find(arguments, option) != arguments.end(); };
  if (!arguments.empty() && !arguments.front().starts_with('-') && !given("--threads") && !given("--lane") &&
      !given("--device") && !given("--help"))
    command.arguments.insert(command.arguments.end(), {"--threads", "1"});
  Outcome outcome = run_process(command);
  EXPECT_FALSE(outcome.timed_out) << joined(arguments);
  EXPECT_EQ(outcome.err.find("Sanitizer"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("runtime error"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("internal error"), std::string::npos) << outcome.err;
  if (command.stdout_kind == StdoutKind::captured) {
    EXPECT_EQ(valid_utf8_prefix(outcome.out), outcome.out.size()) << joined(arguments);
  }
  return outcome;
}

/// stdout of a run that must end with `status`, read as exactly one JSON document and a line end.
inline nlohmann::ordered_json json_of(const Outcome& outcome, int status = 0) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_TRUE(outcome.out.ends_with("}\n")) << outcome.out;
  return nlohmann::ordered_json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
}

/// generate --json; fails the test unless it exits 0.
inline nlohmann::ordered_json generate_json(const std::string& model, Arguments arguments) {
  arguments.insert(arguments.begin(), {"generate", model, "--json"});
  return json_of(foresay(arguments));
}

inline void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const auto& part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
}

/// A refusal: the exit status, nothing on stdout, and every part in what stderr says.
inline void expect_refused(
    const Arguments& arguments, int status, const std::vector<std::string>& parts, Command command = {}) {
  SCOPED_TRACE(joined(arguments));
  const Outcome outcome = foresay(arguments, std::move(command));
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  expect_parts(outcome.err, {"foresay: "});
  expect_parts(outcome.err, parts);
}

/// A copy of the bundled model whose small files may be changed; the weights are a link.
inline fs::path copy_bundled(const fs::path& folder) {
  fs::create_directories(folder);
  for (const auto& entry : fs::directory_iterator(kBundled)) {
    const fs::path target = folder / entry.path().filename();
    if (entry.path().extension() == ".safetensors") {
      fs::create_symlink(entry.path(), target);
    } else {
      fs::copy_file(entry.path(), target);
    }
  }
  return folder;
}

/// Edits the weights of a copy of the bundled model.
inline void edit_bundled_weights(const fs::path& folder, const std::function<void(TensorMap&)>& edit) {
  const fs::path file = folder / "model.safetensors";
  fs::remove(file);
  fs::copy_file(kBundled + "/model.safetensors", file);
  edit_tensors(file, edit);
}

}  // namespace foresay
