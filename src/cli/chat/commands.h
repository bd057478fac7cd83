// cli/chat/commands.h: what may be typed in a conversation beside messages: /reset, /system, /depth, /stats, /help,
// /quit.
#pragma once

#include <string>

#include "cli/chat/session.h"

namespace foresay::cli {

/// A line that begins with a slash and is no pasted block.
[[nodiscard]] bool is_command(const std::string& line);

/// Does what the line says, and tells on stderr; what it cannot do is told, too. Returns whether to leave.
[[nodiscard]] bool run_command(const std::string& line, ChatSession& session);

/// The commands with what they do, a line each.
[[nodiscard]] std::string command_help();

}  // namespace foresay::cli
