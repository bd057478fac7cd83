// base/error.h: throwing the one exception type with a formatted message.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "foresay/error.h"

namespace foresay {

/// Throws Error with a formatted message: `fail(ErrorCode::checkpoint, "[load] {}: expected {}", name, shape)`.
template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace foresay
