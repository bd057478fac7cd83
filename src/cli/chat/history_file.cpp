#include "cli/chat/history_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace foresay::cli {
namespace {

constexpr std::size_t kMostEntries = 1000;

/// A line end within an entry is written as \n, a backslash as two.
std::string escaped(const std::string& entry) {
  std::string line;
  for (const char c : entry) {
    if (c == '\n') {
      line += "\\n";
    } else {
      line += c == '\\' ? "\\\\" : std::string(1, c);
    }
  }
  return line;
}

std::string unescaped(const std::string& line) {
  std::string entry;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool pair = line[i] == '\\' && i + 1 < line.size();
    if (pair) ++i;
    entry += pair && line[i] == 'n' ? '\n' : line[i];
  }
  return entry;
}

}  // namespace

std::string default_history_file() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const auto state = variable("XDG_STATE_HOME"); !state.empty()) return state + "/foresay/history";
  if (const auto home = variable("HOME"); !home.empty()) return home + "/.local/state/foresay/history";
  return {};
}

std::vector<std::string> HistoryFile::load() const {
  std::vector<std::string> entries;
  std::ifstream in(path_);
  for (std::string line; std::getline(in, line);) entries.push_back(unescaped(line));
  if (entries.size() <= kMostEntries) return entries;
  const bool overgrown = entries.size() > 2 * kMostEntries;
  entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(kMostEntries));
  if (overgrown) write(entries, O_TRUNC);
  return entries;
}

void HistoryFile::append(const std::string& entry) const {
  write({entry}, O_APPEND);
}

void HistoryFile::write(const std::vector<std::string>& entries, int flags) const {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
  if (file < 0) return;
  (void)::fchmod(file, 0600);  // prompts are private, also in a file that was there before
  std::string text;
  for (const std::string& entry : entries) text += escaped(entry) + "\n";
  (void)!::write(file, text.data(), text.size());  // in one piece, so that entries of two programs do not mix
  ::close(file);
}

}  // namespace foresay::cli
