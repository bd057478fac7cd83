// checkpoint/name_list.h: a list of names in a message.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace foresay {

/// "a, b, c and 4 more"
[[nodiscard]] inline std::string list_names(const std::vector<std::string>& names, std::size_t most = 4) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > most) text += fmt::format(" and {} more", names.size() - most);
  return text;
}

}  // namespace foresay
