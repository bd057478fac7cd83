// base/cache_folder.h: where what can be made again is kept between runs.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace foresay {

/// $XDG_CACHE_HOME/foresay/<name>, by default ~/.cache/foresay/<name>; empty where neither variable names a folder. A
/// relative one is ignored, as XDG asks. Makes nothing.
[[nodiscard]] std::filesystem::path cache_folder(std::string_view name);

/// The file in `folder` for a key: its name is a hash, so the file has to say the key itself.
[[nodiscard]] std::filesystem::path cache_entry(const std::filesystem::path& folder, const std::string& key);

/// Writes an entry whole, making its folder, so that runs at the same time do not harm each other. Throws
/// ErrorCode::capacity where it cannot be written.
///   where  for the message: "cost"
void write_cache_entry(const std::filesystem::path& file, const std::string& text, const std::string& where);

}  // namespace foresay
