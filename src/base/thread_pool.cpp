#include "base/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#if defined(__linux__)
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace foresay {
namespace {

// How long a thread that waits keeps looking before it sleeps or yields. Loops follow each other within microseconds
// inside a pass, and a wake costs tens of them; what lies between two passes (sampling) is still shorter than this.
constexpr auto kSpin = std::chrono::microseconds(100);

/// Tells the core that this is a waiting loop.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

/// Looks until `done` or kSpin has passed; returns whether it is done.
template <typename Done>
bool spin_until(Done done) {
  if (done()) return true;
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < 16; ++i) {
      relax();
      if (done()) return true;
    }
  } while (std::chrono::steady_clock::now() - start < kSpin);
  return false;
}

/// The cgroup v2 quota in cores, or a large number where there is none.
double cgroup_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 1e9;
  return std::strtod(quota.c_str(), nullptr) / period;
}

constexpr std::uint64_t kClosed = 1u << 31;
constexpr std::uint64_t kInside = kClosed - 1;

constexpr std::uint32_t generation_of(std::uint64_t state) {
  return static_cast<std::uint32_t>(state >> 32);
}
constexpr std::uint64_t open_state(std::uint32_t generation) {
  return std::uint64_t{generation} << 32;
}

constexpr std::uint64_t run_of(std::uint64_t first, std::uint64_t end) {
  return first << 32 | end;
}

/// One part of a run, from its front or its back; nothing where it is empty.
std::optional<std::int64_t> take_part(std::atomic<std::uint64_t>& run, bool front) {
  std::uint64_t seen = run.load(std::memory_order_relaxed);
  while (true) {
    const std::uint64_t first = seen >> 32, end = seen & 0xffffffffu;
    if (first == end) return std::nullopt;
    if (run.compare_exchange_weak(seen, front ? run_of(first + 1, end) : run_of(first, end - 1))) {
      return static_cast<std::int64_t>(front ? first : end - 1);
    }
  }
}

}  // namespace

int available_cores() {
  int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = std::max(1, CPU_COUNT(&set));
#elif defined(__APPLE__)
  // Performance cores: a loop that waits for an efficiency core is slower than one without it.
  int fast = 0;
  std::size_t size = sizeof fast;
  if (sysctlbyname("hw.perflevel0.logicalcpu", &fast, &size, nullptr, 0) == 0 && fast > 0) cores = fast;
#endif
  return std::max(1, static_cast<int>(std::min<double>(cores, std::ceil(cgroup_cores()))));
}

ThreadPool::ThreadPool(int threads) : shares_(static_cast<std::size_t>(threads)), state_(kClosed) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    state_ = open_state(generation_of(state_) + 1) | kClosed;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(int n, int grain, const std::function<void(int, int)>& body) {
  grain = std::max(1, grain);
  if (workers_.empty() || n <= grain) {
    for (int begin = 0; begin < n;) {
      const int end = begin + std::min(grain, n - begin);
      body(begin, end);
      begin = end;
    }
    return;
  }
  body_ = &body;
  n_ = n;
  grain_ = grain;
  const std::uint64_t parts = (static_cast<std::uint64_t>(n) - 1) / static_cast<std::uint64_t>(grain) + 1;
  for (std::uint64_t i = 0, all = shares_.size(); i < all; ++i) {
    shares_[i].parts = run_of(parts * i / all, parts * (i + 1) / all);
  }
  state_ = open_state(generation_of(state_) + 1);  // before looking for sleepers, who look at it before they sleep
  if (sleepers_ > 0) {
    {
      const std::lock_guard lock(mutex_);
    }
    wake_.notify_all();
  }
  run_parts(0);
  state_.fetch_or(kClosed, std::memory_order_acq_rel);
  const auto all_out = [&] { return (state_.load(std::memory_order_acquire) & kInside) == 0; };
  if (!spin_until(all_out)) {
    while (!all_out()) std::this_thread::yield();  // somebody's core was taken away: it may need this one
  }
}

void ThreadPool::run_parts(int thread) {
  const auto own = static_cast<std::size_t>(thread);
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    Share& share = shares_[(own + i) % shares_.size()];
    while (const auto part = take_part(share.parts, /*front=*/i == 0)) {
      const std::int64_t begin = *part * grain_;
      (*body_)(static_cast<int>(begin), static_cast<int>(std::min<std::int64_t>(n_, begin + grain_)));
    }
  }
}

bool ThreadPool::enter(std::uint32_t generation) {
  std::uint64_t state = state_.load(std::memory_order_acquire);
  while (generation_of(state) == generation && (state & kClosed) == 0) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void ThreadPool::work(int thread) {
  std::uint32_t seen = 0;
  const auto is_new = [&] { return generation_of(state_) != seen; };
  while (true) {
    if (!spin_until(is_new)) {
      std::unique_lock lock(mutex_);
      ++sleepers_;
      wake_.wait(lock, is_new);
      --sleepers_;
    }
    seen = generation_of(state_.load(std::memory_order_acquire));
    if (stop_) return;
    if (!enter(seen)) continue;
    run_parts(thread);
    state_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace foresay
