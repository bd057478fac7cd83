// cli/interrupt.h: Ctrl-C.
#pragma once

#include <atomic>

namespace foresay::cli {

/// From here on Ctrl-C only sets interrupted(), and ends a wait for stdin; a second one ends the process at once.
void watch_interrupts();
[[nodiscard]] const std::atomic<bool>& interrupted();

}  // namespace foresay::cli
