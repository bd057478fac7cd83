#include "base/cache_folder.h"

#include <cstdlib>

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

}  // namespace foresay
