// base/thread_pool.h: a fixed set of workers for data-parallel loops.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace foresay {

/// Cores this process may use: the affinity mask and the cgroup's CPU quota, on macOS the performance
/// cores; at least 1.
[[nodiscard]] int available_cores();

/// Runs loops over [0, n) on `threads` threads, the caller among them. Work is cut into parts by index alone, and each
/// index is run by exactly one thread, so results cannot depend on the number of threads if indices write apart.
/// One loop at a time, from one thread at a time; bodies must not throw.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);  ///< total, caller included, >= 1
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(begin, end) over disjoint ranges that cover [0, n), each at most `grain` long; returns when all are
  /// done.
  void parallel_for(int n, int grain, const std::function<void(int, int)>& body);

 private:
  void work(int thread);
  void run_parts(int thread);
  [[nodiscard]] bool enter(std::uint32_t generation);

  // What the current loop is. Written between loops, when no worker is inside one.
  const std::function<void(int, int)>* body_ = nullptr;
  int n_ = 0, grain_ = 1;
  /// Parts not handed out, one run per thread: first in the high half, end in the low one. A thread takes its own from
  /// the front, so that it walks through memory without a break, then those of others from the back.
  struct alignas(64) Share {  // a cache line each: threads take parts at the same moments
    std::atomic<std::uint64_t> parts;
  };
  std::vector<Share> shares_;

  // One word, so that a worker enters a loop only while it is open: generation in the high half (it counts loops;
  // workers wait for it to change), then a closed bit and the number of workers inside. A worker whose core is taken
  // away wakes to a closed loop and is not waited for.
  std::atomic<std::uint64_t> state_;
  std::atomic<bool> stop_{false};
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;  ///< guards sleeping on wake_
  std::condition_variable wake_;
  std::vector<std::thread> workers_;  // last: they read all of the above
};

}  // namespace foresay
