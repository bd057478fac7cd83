#include "cli/bench/bandwidth.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "cli/bench/timed_model.h"

namespace foresay::cli {
namespace {

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

/// Runs body(thread) on threads that begin together; milliseconds of the slowest.
double slowest_ms(std::size_t threads, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> waiting{threads};
  std::vector<std::thread> running;
  std::vector<double> taken(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      const auto start = std::chrono::steady_clock::now();
      body(i);
      taken[i] = milliseconds_since(start);
    });
  }
  for (std::thread& thread : running) thread.join();
  return std::ranges::max(taken);
}

}  // namespace

ReadMeter::ReadMeter(int threads, std::size_t bytes) : parts_(static_cast<std::size_t>(threads)) {
  const std::size_t words = bytes / sizeof(std::uint64_t) / parts_.size();
  (void)slowest_ms(parts_.size(), [&](std::size_t i) { parts_[i].assign(words, i); });
}

double ReadMeter::gbps() const {
  const Sum sum = widest();
  std::atomic<std::uint64_t> kept{0};  // so that no sum is left out
  const double ms = slowest_ms(parts_.size(), [&](std::size_t i) { kept += sum(parts_[i].data(), parts_[i].size()); });
  return static_cast<double>(parts_.size() * parts_.front().size() * sizeof(std::uint64_t)) /
         (std::max(ms, 1e-6) * 1e6);
}

}  // namespace foresay::cli
