// The foresay program: picks a verb, and turns every failure into one line on stderr and the exit status of
// docs/errors.md.
#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <exception>
#include <new>

#include "base/error.h"
#include "cli/verb.h"

namespace foresay::cli {

std::span<const Verb> verbs() {
  static constexpr Verb kVerbs[] = {
      {"generate", "Generate text from one prompt", add_generate},
      {"inspect", "Say what a checkpoint is and what foresay will run", add_inspect},
      {"eval", "Write logits and hidden states for given ids", add_eval},
  };
  return kVerbs;
}

namespace {

int run(int argc, char** argv) {
  CLI::App app("foresay: language models with multi-token-prediction heads, several tokens per pass, the same answers",
      "foresay");
  app.set_version_flag("--version", "foresay " FORESAY_VERSION);
  app.require_subcommand(1);
  int status = 0;
  for (const Verb& verb : verbs()) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    sub->callback([&status, action = verb.add(*sub)] { status = action(); });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);  // help and version print on stdout with code 0
    return code == 0 ? 0 : exit_code(ErrorCode::usage);
  }
  return status;
}

}  // namespace
}  // namespace foresay::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed stdout is an error to report, not a death
  try {
    return foresay::cli::run(argc, argv);
  } catch (const foresay::Error& error) {
    fmt::print(stderr, "foresay: {}\n", error.what());
    return foresay::exit_code(error.code());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "foresay: out of memory\n");
    return foresay::exit_code(foresay::ErrorCode::capacity);
  } catch (const std::exception& error) {
    fmt::print(stderr, "foresay: internal error: {}\n", error.what());
    return foresay::exit_code(foresay::ErrorCode::internal);
  }
}
