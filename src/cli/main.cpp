// The foresay program: picks a verb, and turns every failure into one line on stderr and the exit status of
// docs/errors.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <new>
#include <sstream>

#include "base/error.h"
#include "cli/output.h"
#include "cli/verb.h"

namespace foresay::cli {

std::span<const Verb> verbs() {
  static constexpr Verb kVerbs[] = {
      {"generate", "Generate text from one prompt", add_generate},
      {"chat", "Converse, on a terminal or through a pipe", add_chat},
      {"inspect", "Say what a checkpoint is and what foresay will run", add_inspect},
      {"eval", "Write logits and hidden states of given ids, or say how well a text is predicted", add_eval},
      {"verify", "Check that drafting changes nothing on this checkpoint", add_verify},
      {"bench", "Measure speed: decode, prefill, passes, load", add_bench},
  };
  return kVerbs;
}

namespace {

std::string verb_names() {
  std::string names;
  for (const Verb& verb : verbs()) names += fmt::format("{}{}", names.empty() ? "" : ", ", verb.name);
  return names;
}

/// "foresay generate" once the verb is known, else "foresay"; with the verb's own verb, where it has some.
std::string command_of(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app.get_name() : app.get_name() + " " + command_of(*chosen.front());
}

int run(int argc, char** argv) {
  CLI::App app("foresay: language models with multi-token-prediction heads, several tokens per pass, the same answers",
      "foresay");
  app.set_version_flag("--version", "foresay " FORESAY_VERSION);
  app.require_subcommand(0, 1);  // none is told below, in words of our own
  app.footer(
      "Example:\n  foresay generate --prompt 'def main():' --max-tokens 64\n\n`foresay VERB --help` lists a verb's "
      "options.");
  int status = 0;
  for (const Verb& verb : verbs()) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    sub->callback([&status, action = verb.add(*sub)] { status = action(); });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream help, ignored;
    const bool asked = app.exit(error, help, ignored) == 0;  // --help and --version arrive here too
    if (asked) {
      write_out(help.str());
      return 0;
    }
    fail(ErrorCode::usage, "{}; see `{} --help`", error.what(), command_of(app));
  }
  if (app.get_subcommands().empty()) {
    fail(ErrorCode::usage, "expected a verb ({}), found none; see `foresay --help`", verb_names());
  }
  return status;
}

}  // namespace
}  // namespace foresay::cli

int main(int argc, char** argv) {
  using foresay::ErrorCode;
  using foresay::cli::say;
  std::signal(SIGPIPE, SIG_IGN);  // a closed stdout is an error to report, not a death
  foresay::cli::hold_standard_streams();
  try {
    return foresay::cli::run(argc, argv);
  } catch (const foresay::Error& error) {
    say(fmt::format("foresay: {}\n", error.what()));
    return foresay::exit_code(error.code());
  } catch (const std::bad_alloc&) {
    say("foresay: out of memory\n");
    return foresay::exit_code(ErrorCode::capacity);
  } catch (const std::exception& error) {
    say(fmt::format("foresay: internal error: {}; please report this\n", error.what()));
    return foresay::exit_code(ErrorCode::internal);
  }
}
