// library/bundled_model.h: where an installation keeps the checkpoint that comes with it.
#pragma once

#include <filesystem>

namespace foresay {

/// The folder of the bundled tiny-qwen3_5, found from the file that this code is in: the shared library, the Python
/// module or a program. Throws ErrorCode::usage where it is not there.
[[nodiscard]] std::filesystem::path bundled_model();

}  // namespace foresay
