// cli/bench/bandwidth.h: how fast this machine reads memory, the roof of a pass that reads every weight once.
#pragma once

#include <cstddef>

namespace foresay::cli {

/// GB/s (10^9 bytes) that `threads` threads together read from a buffer of `bytes`, the best of several runs. Make it
/// several times larger than the last cache. Takes about a second for 1 GiB.
[[nodiscard]] double read_bandwidth(int threads, std::size_t bytes);

}  // namespace foresay::cli
