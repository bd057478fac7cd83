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
constexpr std::size_t kLanes = 16;  // independent sums, so that loads do not wait for additions

std::uint64_t sum(const std::uint64_t* data, std::size_t count) {
  std::array<std::uint64_t, kLanes> sums{};
  for (std::size_t i = 0; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += data[i + lane];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t each : sums) total += each;
  return total;
}

}  // namespace

double read_bandwidth(int threads, std::size_t bytes) {
  const auto count = static_cast<std::size_t>(threads);
  const std::size_t words = bytes / sizeof(std::uint64_t) / count;  // of a thread
  std::vector<std::vector<std::uint64_t>> parts(count);
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
