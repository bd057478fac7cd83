// foresay chat: a conversation, on a terminal or through a pipe.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/chat/commands.h"
#include "cli/chat/history_file.h"
#include "cli/chat/lines.h"
#include "cli/chat/message.h"
#include "cli/chat/session.h"
#include "cli/generate_report.h"
#include "cli/interrupt.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "cli/sampling_options.h"
#include "cli/verb.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  ModelOptions model;
  SamplingArguments sampling;
  DecodeOptions decode;
  std::string system;
  bool no_history = false, json = false;
};

/// The session's own state between answers.
struct Chat {
  const Options& options;
  const OpenModel& open;
  ChatSession session;
  std::unique_ptr<Lines> lines;
  bool head_was_checked = false;
};

/// What the answer cost, dimly; only where somebody watches.
void say_stats(const Stats& stats) {
  std::string text = fmt::format("{} tokens, {:.1f} tokens/s", stats.generated, stats.decode_tok_s());
  if (has_drafted(stats)) text += ", acceptance " + acceptance_of(stats);
  say(fmt::format("\033[2m[{}]\033[0m\n", text));
}

void answer(Chat& chat, const std::string& message) {
  const ChatAnswer said =
      chat.session.answer(message, chat.options.json ? nullptr : std::function<void(std::string_view)>(write_out));
  const Stats& stats = said.generation.stats;
  if (chat.options.json) {
    write_json(
        Json{{"text", said.text}, {"ids", said.generation.ids}, {"finish_reason", name_of(said.generation.finish)},
            {"stats", stats_json(stats, {chat.options.model.mtp, has_drafted(stats), chat.open.loaded.mtp_reason})}});
  } else {
    write_out("\n");
  }
  if (stats.depth > 0 && stats.passes >= 2 && !has_drafted(stats) && !std::exchange(chat.head_was_checked, true))
    say_silent_head(chat.open, chat.options.model, "chat");
  if (chat.lines->is_terminal()) say_stats(stats);
  if (said.generation.finish == Finish::length && stats.generated < chat.options.decode.max_tokens)
    say("the context is full: begin anew with /reset\n");
}

/// Reads and answers until the end; gives the exit status.
int converse(Chat& chat) {
  int interrupts = 0;  // in a row
  while (true) {
    watch_interrupts(Interrupts::all);
    const Line message = read_message(*chat.lines);
    if (message.kind == Line::Kind::end) return 0;
    if (message.kind == Line::Kind::interrupted) {
      if (!chat.lines->is_terminal() || (message.was_empty && interrupts > 0)) return exit_code(ErrorCode::cancelled);
      ++interrupts;
      if (message.was_empty) say("Ctrl-C again leaves\n");
      continue;
    }
    interrupts = 0;
    if (message.text.find_first_not_of(" \t\n") == std::string::npos) continue;
    chat.lines->remember(message.text);
    try {
      if (!is_command(message.text)) {
        answer(chat, message.text);
      } else if (run_command(message.text, chat.session)) {
        return 0;
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::usage) throw;
      say(fmt::format("{}\n", error.what()));  // of this message; the conversation goes on
    }
  }
}

int run(const Options& options) {
  expect_utf8("--system", options.system);
  check_sampling(options.sampling, options.decode);
  watch_interrupts();
  const bool terminal = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDERR_FILENO) != 0;
  const auto open = open_model(options.model, /*json=*/options.json || terminal);
  Report report;
  const TextModel text(*open, report);
  say_report(report, /*json=*/true);

  DecodeOptions decode = options.decode;
  decode.stop_ids = text.stop_ids();
  decode.sampling = sampling_for(options.sampling, text);
  Chat chat = {options, *open, ChatSession(text, decode, options.system),
      terminal ? terminal_lines(options.no_history ? "" : default_history_file()) : plain_lines()};
  if (terminal) {
    say(fmt::format("{}; /help lists the commands, \"\"\" or a \\ at the end of a line begin longer messages\n",
        open->checkpoint.folder().filename().string()));
  }
  return converse(chat);
}

}  // namespace

std::function<int()> add_chat(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_model_options(app, options->model);
  app.add_option("--system", options->system, "System message");
  add_length_options(app, options->decode);
  add_sampling_options(app, options->sampling);
  add_drafting_options(app, options->decode);
  app.add_flag("--no-history", options->no_history, "Neither read nor write the history of what was typed");
  app.add_flag("--json", options->json, "Print one JSON document per answer, a line each");
  app.footer(
      "Commands in a conversation:\n" + command_help() +
      "\nA line that ends with \\ goes on; \"\"\" begins and ends a message of several lines; a pasted block is one "
      "message.\nCtrl-C stops the answer. stdout carries answers alone; stdin may be a pipe, a message per line. "
      "With --seed S,\nturn t (from 0) has the noise of seed S + t.\n\nExample:\n  foresay chat "
      "models/tiny-qwen3_5 --system 'You write Python.' --temperature 0.7 --seed 7");
  return [options] { return run(*options); };
}

}  // namespace foresay::cli
