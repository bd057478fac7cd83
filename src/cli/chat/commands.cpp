#include "cli/chat/commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/option_values.h"
#include "cli/output.h"

namespace foresay::cli {
namespace {

constexpr int kDeepest = 8;

struct Command {
  const char* name;
  const char* argument;
  const char* help;
  void (*run)(const std::string& argument, ChatSession& session);  ///< null: leaves
};

void reset(const std::string& /*argument*/, ChatSession& session) {
  session.reset();
  say("a new conversation\n");
}

void system_message(const std::string& argument, ChatSession& session) {
  if (argument.empty()) {
    say(session.system().empty() ? "no system message\n" : fmt::format("system message: {}\n", session.system()));
    return;
  }
  expect_utf8("/system", argument);
  session.set_system(argument);
  say("the system message holds from the next answer on\n");
}

void depth(const std::string& argument, ChatSession& session) {
  const ModelInfo& info = session.model().model().info();
  if (argument.empty()) {
    say(fmt::format("depth {}\n", session.depth()));
    return;
  }
  const auto value = parse_number<int>(argument);
  if (!value || *value < 0 || *value > kDeepest) {
    say(fmt::format("/depth: {}\n", mismatch(fmt::format("a whole number from 0 to {}", kDeepest), argument)));
    return;
  }
  session.set_depth(*value);
  if (*value > 0 && info.head_layers == 0) {
    say("this model has no head in use: nothing is drafted at any depth\n");
  } else if (*value > info.max_depth) {
    say(fmt::format("depth {} is capped to {}, what this head can do\n", *value, info.max_depth));
  } else {
    say(fmt::format("depth {}\n", *value));
  }
}

void stats(const std::string& /*argument*/, ChatSession& session) {
  const ChatTotals& totals = session.totals();
  const double after_first = static_cast<double>(totals.tokens - totals.answers);  // first tokens come from prompts
  say(fmt::format("{} answers, {} tokens, {:.1f} tokens/s\n", totals.answers, totals.tokens,
      totals.seconds > 0 ? after_first / totals.seconds : 0));
  if (totals.drafted == 0) {
    say("nothing was drafted\n");
    return;
  }
  say(fmt::format("{} of {} drafts accepted ({:.2f}), {:.2f} tokens per pass\n", totals.accepted, totals.drafted,
      static_cast<double>(totals.accepted) / static_cast<double>(totals.drafted),
      after_first / static_cast<double>(totals.passes)));
}

void help(const std::string& /*argument*/, ChatSession& /*session*/) {
  say(command_help());
}

constexpr Command kCommands[] = {
    {"/reset", "", "forget what was said; the system message stays", reset},
    {"/system", " TEXT", "set the system message; without TEXT show it", system_message},
    {"/depth", " N", "draft N tokens per pass, 0 to 8; without N show it", depth},
    {"/stats", "", "speed and acceptance of all answers so far", stats},
    {"/help", "", "this list", help},
    {"/quit", "", "leave; so do Ctrl-D, and Ctrl-C twice", nullptr},
};

}  // namespace

bool is_command(const std::string& line) {
  return line.starts_with('/') && line.find('\n') == std::string::npos;
}

bool run_command(const std::string& line, ChatSession& session) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::size_t first = line.find_first_not_of(' ', end);
  std::string argument = first == std::string::npos ? "" : line.substr(first);
  while (argument.ends_with(' ')) argument.pop_back();
  for (const Command& command : kCommands) {
    if (line.substr(0, end) != command.name) continue;
    if (command.run == nullptr) return true;
    command.run(argument, session);
    return false;
  }
  say(fmt::format("{}: no such command; /help lists them; put a blank in front of a message that begins with a slash\n",
      line.substr(0, end)));
  return false;
}

std::string command_help() {
  std::string text;
  for (const Command& command : kCommands)
    text += fmt::format("  {:<14}{}\n", std::string(command.name) + command.argument, command.help);
  return text;
}

}  // namespace foresay::cli
