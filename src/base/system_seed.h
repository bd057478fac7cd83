// base/system_seed.h: a seed that nobody chose.
#pragma once

#include <cstdint>
#include <random>

namespace foresay {

/// 64 bits from the system's own source of randomness.
[[nodiscard]] inline std::uint64_t system_seed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

}  // namespace foresay
