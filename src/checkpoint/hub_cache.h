// checkpoint/hub_cache.h: names of Hugging Face models -> folders that were downloaded before.
#pragma once

#include <filesystem>
#include <string>

namespace foresay {

/// The folder that `folder_or_name` means. What exists as a path is that path. Else `org/name` or `org/name@revision`
/// is looked up in the local Hugging Face cache; a revision is a branch, a tag, or a commit by its beginning (4 digits
/// or more), `main` without one. Anything else is given back as it is: opening it says what is wrong. Nothing is
/// downloaded. Throws ErrorCode::usage when the cache has no such model or revision, or only a part of it.
[[nodiscard]] std::filesystem::path resolve_checkpoint(const std::string& folder_or_name);

/// Where that cache is: $HF_HUB_CACHE, else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else
/// ~/.cache/huggingface/hub. Empty variables count as unset. Throws ErrorCode::usage when none is set, not even $HOME.
[[nodiscard]] std::filesystem::path hub_cache_folder();

}  // namespace foresay
