#include "library/checkpoint_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>

namespace foresay {

std::string checkpoint_files(const Checkpoint& checkpoint) {
  std::set<std::string> files = {(checkpoint.folder() / "config.json").string()};
  for (const auto& [name, view] : checkpoint.trunk()) files.insert(view.file);
  for (const auto& [name, view] : checkpoint.head().tensors) files.insert(view.file);
  std::string words;
  for (const std::string& file : files) {
    struct stat status{};
    if (::stat(file.c_str(), &status) != 0) continue;
    words += fmt::format("{}{} {} {}", words.empty() ? "" : "; ", std::filesystem::path(file).filename().string(),
        status.st_size, static_cast<long long>(status.st_mtime));
  }
  return words;
}

}  // namespace foresay
