// A C library function as a broken machine might compute it: the same argument gives another value each time. Loaded
// into the program with LD_PRELOAD, to see that `foresay verify` notices.
#include <atomic>
#include <cmath>
#include <cstdint>

extern "C" float expf(float x) {
  static std::atomic<std::uint32_t> calls{0};
  const std::uint32_t noise = (calls++ * 2654435761u) >> 16;
  return static_cast<float>(std::exp(static_cast<double>(x)) * (0.5 + noise / 65536.0));
}
