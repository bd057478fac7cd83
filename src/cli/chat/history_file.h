// cli/chat/history_file.h: what was typed, kept between runs.
#pragma once

#include <string>
#include <vector>

namespace foresay::cli {

/// $XDG_STATE_HOME/foresay/history, else ~/.local/state/foresay/history; empty when neither variable is set.
[[nodiscard]] std::string default_history_file();

/// A text file with an entry per line, readable by its owner alone. Several programs may append to it.
class HistoryFile {
 public:
  /// An empty path keeps nothing. A file that cannot be read or written is as good as none: chatting goes on.
  explicit HistoryFile(std::string path) : path_(std::move(path)) {}

  /// The newest entries, oldest first. A file that has grown far beyond them is cut.
  [[nodiscard]] std::vector<std::string> load() const;
  void append(const std::string& entry) const;

 private:
  void write(const std::vector<std::string>& entries, int flags) const;

  std::string path_;
};

}  // namespace foresay::cli
