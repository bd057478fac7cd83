#include "base/cache_folder.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>

#include "base/temporary_file.h"

namespace foresay {

std::filesystem::path cache_folder(std::string_view name) {
  const auto variable = [](const char* of) {
    const char* const value = std::getenv(of);
    return std::filesystem::path(value != nullptr ? value : "");
  };
  const std::filesystem::path xdg = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (xdg.is_absolute()) return xdg / "foresay" / name;
  return home.is_absolute() ? home / ".cache" / "foresay" / name : std::filesystem::path();
}

std::filesystem::path cache_entry(const std::filesystem::path& folder, const std::string& key) {
  std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a: the name only has to spread
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return folder / fmt::format("{:016x}.json", hash);
}

void write_cache_entry(const std::filesystem::path& file, const std::string& text, const std::string& where) {
  std::error_code ignored;  // the file cannot be made then
  std::filesystem::create_directories(file.parent_path(), ignored);
  TemporaryFile temporary(file, where);
  temporary.write(text.data(), text.size());
  temporary.publish();
}

}  // namespace foresay
