// cli/bench/benches.h: the table of what `foresay bench` measures.
#pragma once

#include "cli/verb.h"

namespace foresay::cli {

/// One line per bench. A new one is one file in cli/bench/ and one line here.
[[nodiscard]] std::span<const Verb> benches();

std::function<int()> add_bench_decode(CLI::App& app);
std::function<int()> add_bench_prefill(CLI::App& app);
std::function<int()> add_bench_passes(CLI::App& app);
std::function<int()> add_bench_load(CLI::App& app);

}  // namespace foresay::cli
