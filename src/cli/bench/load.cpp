// foresay bench load: from the start of a process to its first token, and the memory that a loaded model takes beside
// its mapped weights and its caches.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "cli/bench/benches.h"
#include "cli/bench/subject.h"
#include "cli/bench/timed_model.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "decode/prefill.h"
#include "decode/round.h"

extern char** environ;

namespace foresay::cli {
namespace {

constexpr const char* kPrompt = "Write a Python function that reads a file";
constexpr int kRounds = 4;

struct Options {
  SubjectOptions subject;
  int repeats = 5;
};

/// Runs this program as `generate` for one token; milliseconds from before the start to after the end.
double first_token_ms(const Options& options, const Subject& subject) {
  const ModelOptions& model = options.subject.model;
  std::vector<std::string> arguments = {"foresay", "generate", subject.folder(), "--prompt", kPrompt, "--max-tokens",
      "1", "--ignore-eos", "--json", "--mtp", model.mtp, "--lane", model.lane.lane, "--device", model.lane.device,
      "--threads", std::to_string(model.lane.threads), "--cpu-activations", model.lane.activations};
  std::vector<char*> raw;
  for (std::string& argument : arguments) raw.push_back(argument.data());
  raw.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);

  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  const int problem = posix_spawn(&child, program_file().c_str(), &actions, nullptr, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) fail(ErrorCode::internal, "[bench] {}: cannot be started", program_file().string());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const double taken = milliseconds_since(start);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fail(ErrorCode::check_failed, "[bench] `foresay generate {}` failed, as it says above", subject.folder());
  }
  return taken;
}

/// A line of /proc/self/status in MB; nothing where the system has none.
std::optional<double> status_mb(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(key + ":")) continue;
    return std::strtod(line.c_str() + key.size() + 1, nullptr) * 1024 / 1e6;  // the kernel writes KiB as kB
  }
  return std::nullopt;
}

/// Decodes a little, as a first answer would, and gives the memory that is neither file pages nor trunk caches.
nlohmann::ordered_json memory_line(const Subject& subject) {
  Drafter* const drafter = subject.text().drafter();
  const std::vector<TokenId> prompt =
      subject.text().has_tokenizer() ? subject.text().tokenizer().encode(kPrompt) : subject.tokens(8);
  DecodeOptions decode;
  decode.sampling.vocab_limit = subject.text().vocab_limit();
  Sequence sequence(subject.model(), prompt, decode);
  prefill(subject.model(), drafter, sequence, 512);
  Sequence* const one[] = {&sequence};
  for (int i = 0; i < kRounds; ++i) round(subject.model(), drafter, one);
  if (sequence.finish == Finish::error) subject.text().explain(sequence.problem);

  auto line = subject.line("memory");
  const double caches = static_cast<double>(sequence.caches->bytes()) / 1e6;
  line["caches_mb"] = rounded(caches);
  const auto anonymous = status_mb("RssAnon"), mapped = status_mb("RssFile"), peak = status_mb("VmHWM");
  line["anonymous_mb"] = anonymous ? nlohmann::ordered_json(rounded(*anonymous)) : nullptr;
  line["mapped_mb"] = mapped ? nlohmann::ordered_json(rounded(*mapped)) : nullptr;
  line["peak_mb"] = peak ? nlohmann::ordered_json(rounded(*peak)) : nullptr;
  line["over_mb"] = anonymous ? nlohmann::ordered_json(rounded(*anonymous - caches)) : nullptr;
  return line;
}

int run(const Options& options) {
  const Subject subject(options.subject);
  if (!options.subject.isa.empty()) ::setenv("FORESAY_ISA", options.subject.isa.c_str(), 1);  // for the processes below
  // First, while this process has done nothing but load.
  const auto memory = memory_line(subject);
  std::vector<double> taken;
  for (int i = 0; i <= options.repeats; ++i) {  // the first one brings the files into the page cache
    const double ms = first_token_ms(options, subject);
    if (i > 0) taken.push_back(ms);
  }
  auto line = subject.line("load");
  line["repeats"] = options.repeats;
  line["ms"] = rounded(median(taken));
  line["fastest_ms"] = rounded(std::ranges::min(taken));
  write_json(line);
  write_json(memory);
  return 0;
}

}  // namespace

std::function<int()> add_bench_load(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_subject_options(app, options->subject);
  app.add_option("--repeats", options->repeats, "Processes to start; the median counts")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  app.footer(
      "Prints two lines: ms from the start of `foresay generate` on a short prompt to its end behind the first token, "
      "files in\nthe page cache; and memory after a first answer: over_mb is what is neither mapped files nor caches.\n"
      "\nExample:\n  foresay bench load --shape qwen3_5-0.8b --bits 4");
  return [options] { return run(*options); };
}

}  // namespace foresay::cli
