#include "cli/bench/bandwidth.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "cli/bench/timed_model.h"

namespace foresay::cli {
namespace {

constexpr int kRuns = 8;
constexpr std::size_t kLanes = 32;  // independent sums, so that loads do not wait for additions

/// What each width below is compiled from.
[[gnu::always_inline]] inline std::uint64_t sum_lanes(const std::uint64_t* data, std::size_t count) {
  std::array<std::uint64_t, kLanes> sums{};
  for (std::size_t i = 0; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += data[i + lane];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t each : sums) total += each;
  return total;
}

using Sum = std::uint64_t (*)(const std::uint64_t* data, std::size_t count);

std::uint64_t sum_plain(const std::uint64_t* data, std::size_t count) {
  return sum_lanes(data, count);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] std::uint64_t sum_avx2(const std::uint64_t* data, std::size_t count) {
  return sum_lanes(data, count);
}

[[gnu::target("avx512f")]] std::uint64_t sum_avx512(const std::uint64_t* data, std::size_t count) {
  return sum_lanes(data, count);
}

/// A core has more lines under way the wider its loads are.
Sum widest() {
  if (__builtin_cpu_supports("avx512f")) return sum_avx512;
  return __builtin_cpu_supports("avx2") ? sum_avx2 : sum_plain;
}
#else
Sum widest() {
  return sum_plain;
}
#endif

}  // namespace

double read_bandwidth(int threads, std::size_t bytes) {
  const auto count = static_cast<std::size_t>(threads);
  const std::size_t words = bytes / sizeof(std::uint64_t) / count;  // of a thread
  std::vector<std::vector<std::uint64_t>> parts(count);
  const Sum sum = widest();
  std::atomic<std::uint64_t> kept{0};  // so that no sum is left out
  double best = 0;
  for (int run = 0; run <= kRuns; ++run) {  // the first one makes the buffers
    std::atomic<int> waiting{threads};
    std::vector<std::thread> readers;
    std::vector<double> taken(count);
    for (std::size_t i = 0; i < count; ++i) {
      readers.emplace_back([&, i] {
        if (run == 0) parts[i].assign(words, i);
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        const auto start = std::chrono::steady_clock::now();
        kept += sum(parts[i].data(), words);
        taken[i] = milliseconds_since(start);
      });
    }
    for (std::thread& reader : readers) reader.join();
    const double slowest = std::ranges::max(taken);
    if (run > 0 && slowest > 0) {
      best = std::max(best, static_cast<double>(words * count * sizeof(std::uint64_t)) / (slowest * 1e6));
    }
  }
  return best;
}

}  // namespace foresay::cli
