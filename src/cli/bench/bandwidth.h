// cli/bench/bandwidth.h: how fast this machine reads memory, the roof of a pass that reads every weight once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace foresay::cli {

/// Buffers that `threads` threads read together, `bytes` in all: make that several times the last cache.
class ReadMeter {
 public:
  ReadMeter(int threads, std::size_t bytes);

  /// GB/s (10^9 bytes) of one run over all of them.
  [[nodiscard]] double gbps() const;

 private:
  std::vector<std::vector<std::uint64_t>> parts_;  ///< [threads], each filled by the thread that reads it
};

}  // namespace foresay::cli
