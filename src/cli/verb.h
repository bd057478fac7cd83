// cli/verb.h: the table of commands.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <span>

namespace foresay::cli {

/// One command. `add` declares its options and gives back what runs it; that returns the exit status or throws Error.
struct Verb {
  const char* name;
  const char* summary;
  std::function<int()> (*add)(CLI::App& app);
};

/// One line per verb. A new one is one file in cli/ and one line here.
[[nodiscard]] std::span<const Verb> verbs();

std::function<int()> add_generate(CLI::App& app);
std::function<int()> add_inspect(CLI::App& app);
std::function<int()> add_eval(CLI::App& app);
std::function<int()> add_chat(CLI::App& app);
std::function<int()> add_verify(CLI::App& app);
std::function<int()> add_bench(CLI::App& app);

}  // namespace foresay::cli
