// foresay bench: measures this build on this machine. Each bench is a subcommand and prints JSON lines.
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/bench/benches.h"

namespace foresay::cli {

std::span<const Verb> benches() {
  static constexpr Verb kBenches[] = {
      {"decode", "Tokens per second of the whole loop, at a depth", add_bench_decode},
      {"prefill", "Tokens per second of reading a prompt", add_bench_prefill},
      {"passes", "Cost of a pass by its rows, and of a draft step, against memory bandwidth", add_bench_passes},
      {"load", "Start to first token, and resident memory", add_bench_load},
  };
  return kBenches;
}

std::function<int()> add_bench(CLI::App& app) {
  auto chosen = std::make_shared<std::function<int()>>();
  std::string names;
  app.require_subcommand(0, 1);  // none is told below, in words of our own
  for (const Verb& bench : benches()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", bench.name);
    CLI::App* sub = app.add_subcommand(bench.name, bench.summary);
    sub->callback([chosen, action = bench.add(*sub)] { *chosen = action; });
  }
  app.footer(
      "Prints JSON lines, one per figure. On shared machines compare only what ran alternately (docs/performance.md).\n"
      "\nExamples:\n  foresay bench passes --shape qwen3_5-0.8b --bits 4\n  foresay bench decode models/tiny-qwen3_5 "
      "--depth 3\n\n`foresay bench NAME --help` lists a bench's options.");
  return [chosen, names] {
    if (!*chosen)
      fail(ErrorCode::usage, "expected what to measure ({}), found none; see `foresay bench --help`", names);
    return (*chosen)();
  };
}

}  // namespace foresay::cli
