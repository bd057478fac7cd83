// Rows times a matrix, by format, rows, shape and instruction set: GB/s of weights and their share of the machine's
// read bandwidth. Every case is compared with the reference before it is timed.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <tuple>

#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "cli/bench/bandwidth.h"
#include "kernels/linear.h"
#include "matrix_pool.h"

namespace foresay {
namespace {

constexpr int kGrain = 64;       // outputs of one call
constexpr int kChecked = 128;    // outputs that are compared with the reference, at either end
constexpr double kClose = 1e-4;  // of the largest: sums may run in another order

/// The one place that knows how the kernel is called.
void call(const float* x, int rows, const WeightView& w, float* y, int first, int last) {
  thread_local std::vector<float> scratch;
  scratch.resize(static_cast<std::size_t>(w.in));
  linear(x, rows, w, y, first, last, scratch.data());
}

struct Case {
  Isa isa;
  int bits, out, in, rows;
};

/// The matrices of the case at hand: they are large, so one set at a time.
MatrixPool& pool_of(const Case& c) {
  static std::unique_ptr<MatrixPool> pool;
  static std::tuple<int, int, int> made;
  if (const std::tuple wanted(c.bits, c.out, c.in); made != wanted) {
    pool.reset();
    pool = std::make_unique<MatrixPool>(c.bits, c.out, c.in);
    made = wanted;
  }
  return *pool;
}

double bandwidth() {
  static const double gbps = cli::read_bandwidth(available_cores(), std::size_t{1} << 30);
  return gbps;
}

/// Largest difference to the reference over the largest value.
double difference(const Case& c, const std::vector<float>& x, const WeightView& w) {
  const auto size = static_cast<std::size_t>(c.rows) * static_cast<std::size_t>(c.out);
  std::vector<float> expected(size), found(size);
  double worst = 0, largest = 0;
  for (const int first : {0, std::max(0, c.out - kChecked)}) {
    const int last = std::min(c.out, first + kChecked);
    use_isa(Isa::reference);
    call(x.data(), c.rows, w, expected.data(), first, last);
    use_isa(c.isa);
    call(x.data(), c.rows, w, found.data(), first, last);
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (!std::isfinite(found[i])) return INFINITY;
    worst = std::max(worst, std::abs(static_cast<double>(found[i]) - expected[i]));
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
  }
  return worst / largest;
}

void run(benchmark::State& state, const Case& c) {
  MatrixPool& pool = pool_of(c);
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(c.rows) * static_cast<std::size_t>(c.in));
  for (float& value : x) value = normal(random);
  std::vector<float> y(static_cast<std::size_t>(c.rows) * static_cast<std::size_t>(c.out));
  if (const double apart = difference(c, x, pool.next()); !(apart < kClose)) {
    state.SkipWithError(fmt::format("differs from the reference by {:.2g}", apart).c_str());
    return;
  }
  use_isa(c.isa);
  ThreadPool threads(available_cores());
  for ([[maybe_unused]] const auto _ : state) {
    const WeightView& w = pool.next();
    threads.parallel_for(c.out, kGrain, [&](int first, int last) { call(x.data(), c.rows, w, y.data(), first, last); });
    benchmark::DoNotOptimize(y.data());
  }
  const double bytes = static_cast<double>(pool.bytes());
  using benchmark::Counter;
  state.counters["gbps"] = Counter(bytes / 1e9, Counter::kIsIterationInvariantRate);
  state.counters["share"] = Counter(bytes / 1e9 / bandwidth(), Counter::kIsIterationInvariantRate);
}

void add_cases() {
  for (const auto& [out, in] : {std::pair{1024, 3584}, {3584, 1024}, {248320, 1024}}) {
    for (const int bits : {4, 8, 16}) {
      for (const Isa isa : available_isas()) {
        for (const int rows : {1, 2, 4, 8, 16, 64}) {
          const Case c = {isa, bits, out, in, rows};
          const std::string format = bits == 16 ? "bf16" : fmt::format("affine{}", bits);
          benchmark::RegisterBenchmark(
              fmt::format("linear/{}/{}/{}x{}/rows:{}", name_of(isa), format, out, in, rows).c_str(),
              [c](benchmark::State& state) { run(state, c); })
              ->UseRealTime()
              ->Unit(benchmark::kMicrosecond);
        }
      }
    }
  }
}

}  // namespace
}  // namespace foresay

int main(int argc, char** argv) {
  foresay::add_cases();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
