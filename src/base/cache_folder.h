// base/cache_folder.h: where what can be made again is kept between runs.
#pragma once

#include <filesystem>
#include <string_view>

namespace foresay {

/// $XDG_CACHE_HOME/foresay/<name>, by default ~/.cache/foresay/<name>; empty where neither variable names a folder. A
/// relative one is ignored, as XDG asks. Makes nothing.
[[nodiscard]] std::filesystem::path cache_folder(std::string_view name);

}  // namespace foresay
