// library/checkpoint_files.h: what tells one checkpoint from another without reading its weights.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"

namespace foresay {

/// Its files by name, size and time, in words. Not its folder: a copy is the same, and often keeps its times.
[[nodiscard]] std::string checkpoint_files(const Checkpoint& checkpoint);

}  // namespace foresay
