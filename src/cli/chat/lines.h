// cli/chat/lines.h: where a conversation's lines come from: an editor on a terminal, or plain stdin.
#pragma once

#include <memory>
#include <string>

namespace foresay::cli {

struct Line {
  enum class Kind {
    text,
    end,          ///< end of file, Ctrl-D
    interrupted,  ///< Ctrl-C; the line is dropped
  };
  Kind kind = Kind::text;
  std::string text;        ///< without its end; a pasted block is one line with line ends inside
  bool was_empty = false;  ///< interrupted: nothing had been typed
};

class Lines {
 public:
  virtual ~Lines() = default;
  /// Waits for a line. The prompt is shown on terminals only.
  [[nodiscard]] virtual Line next(const char* prompt) = 0;
  /// A whole message, for whoever keeps a history.
  virtual void remember(const std::string& message) = 0;
  [[nodiscard]] virtual bool is_terminal() const = 0;
};

/// stdin as it is; nothing is shown and nothing remembered.
[[nodiscard]] std::unique_ptr<Lines> plain_lines();

/// Editing on the terminal that is stdin and stderr, so that stdout carries answers alone: arrow keys, history, pasted
/// blocks.
///   history_file  kept between runs; empty: none
[[nodiscard]] std::unique_ptr<Lines> terminal_lines(const std::string& history_file);

}  // namespace foresay::cli
