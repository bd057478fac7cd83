// base/machine.h: which machine and which build this is, for what is kept between runs.
#pragma once

#include <string>

namespace foresay {

/// The processor as it calls itself, and how many of it the system has: "AMD EPYC 9B14, 64 logical cores".
[[nodiscard]] std::string machine_name();

/// Differs between builds: size and time of the file that this code was loaded from, and of the program. Empty when
/// that cannot be told.
[[nodiscard]] std::string build_name();

}  // namespace foresay
