#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

namespace foresay {
namespace {

class ThreadPoolOf : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolOf, testing::Values(1, 2, 3, 4), testing::PrintToStringParamName());

TEST_P(ThreadPoolOf, RunsEveryIndexExactlyOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (const int grain : {1, 2, 7, 64, 1000}) {
    for (const int n : {0, 1, 2, 3, 6, 7, 8, 63, 64, 65, 128, 999, 1000, 1001}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(n));
      std::atomic<bool> is_well_cut{true};
      pool.parallel_for(n, grain, [&](int begin, int end) {
        if (begin < 0 || begin >= end || end > n || end - begin > grain) is_well_cut = false;
        for (int i = begin; i < end; ++i) visits[static_cast<std::size_t>(i)].fetch_add(1);
      });
      EXPECT_TRUE(is_well_cut) << "n " << n << " grain " << grain;
      for (const auto& count : visits) ASSERT_EQ(count, 1) << "n " << n << " grain " << grain;
    }
  }
}

TEST_P(ThreadPoolOf, ManyLoopsInARowEachSeeTheirOwnBodyAndTheLastResults) {
  ThreadPool pool(GetParam());
  std::vector<int> values(97, 0);  // plain ints: one thread per index, and each loop happens after the one before
  constexpr int kLoops = 5000;
  for (int loop = 0; loop < kLoops; ++loop) {
    const auto n = static_cast<int>(values.size()) - loop % 2;
    pool.parallel_for(n, 1 + loop % 9, [&values, loop](int begin, int end) {
      for (int i = begin; i < end; ++i) values[static_cast<std::size_t>(i)] += loop % 3;
    });
  }
  for (std::size_t i = 0; i + 1 < values.size(); ++i) ASSERT_EQ(values[i], kLoops - 1);  // 0 + 1 + 2 per three loops
}

TEST_P(ThreadPoolOf, LoopsAfterAPauseFindSleepingWorkers) {
  ThreadPool pool(GetParam());
  for (int loop = 0; loop < 20; ++loop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> sum{0};
    pool.parallel_for(100, 3, [&](int begin, int end) {
      for (int i = begin; i < end; ++i) sum += i;
    });
    ASSERT_EQ(sum, 4950);
  }
}

TEST_P(ThreadPoolOf, RangesNearTheLargestIntDoNotOverflow) {
  ThreadPool pool(GetParam());
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const int grain : {kMost, kMost - 1, kMost / 2 + 1, kMost / 3}) {
    std::atomic<long long> covered{0};
    pool.parallel_for(kMost, grain, [&](int begin, int end) { covered += end - begin; });
    EXPECT_EQ(covered, kMost) << grain;
  }
}

TEST(ThreadPool, ResultsDoNotDependOnTheNumberOfThreads) {
  const auto run = [](int threads) {
    ThreadPool pool(threads);
    std::vector<float> out(1003);
    pool.parallel_for(1003, 10, [&](int begin, int end) {
      for (int i = begin; i < end; ++i) {
        float sum = 0;
        for (int j = 1; j < 50; ++j) sum += std::sin(static_cast<float>(i * j)) / static_cast<float>(j);
        out[static_cast<std::size_t>(i)] = sum;
      }
    });
    return out;
  };
  const auto expected = run(1);
  for (const int threads : {2, 3, 4}) EXPECT_EQ(run(threads), expected) << threads;
}

TEST(ThreadPool, StartsAndStopsWithoutALoop) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(1 + i % 4);
}

TEST(ThreadPool, AvailableCoresIsAtLeastOne) {
  EXPECT_GE(available_cores(), 1);
}

}  // namespace
}  // namespace foresay
