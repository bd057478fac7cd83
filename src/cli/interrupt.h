// cli/interrupt.h: Ctrl-C.
#pragma once

#include <atomic>

namespace foresay::cli {

enum class Interrupts {
  first,  ///< a second Ctrl-C ends the process at once
  all,    ///< none ends it: whoever watches has to
};

/// From here on Ctrl-C only sets interrupted(), which is false again, and ends a wait for stdin.
void watch_interrupts(Interrupts which = Interrupts::first);
[[nodiscard]] const std::atomic<bool>& interrupted();

}  // namespace foresay::cli
