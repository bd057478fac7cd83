// Rows times a matrix, by format, rows, shape and instruction set: GB/s of weights and their share of the machine's
// read bandwidth. Every case is compared with the reference before it is timed.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <tuple>

#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "cli/bench/bandwidth.h"
#include "kernels/linear.h"
#include "kernels/linear_int8.h"
#include "matrix_pool.h"

namespace foresay {
namespace {

constexpr int kGrain = 64;       // outputs of one call
constexpr int kChecked = 128;    // outputs that are compared with the reference, at either end
constexpr double kClose = 1e-4;  // of the largest: sums may run in another order

/// How the activations come.
enum class Form { float32, int8 };

/// Activations [rows, in] in both forms, and the one place that knows how the kernels are called.
class Product {
 public:
  Product(int rows, const WeightView& w) : rows_(rows), in_(w.in) {
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    x_.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(w.in));
    for (float& value : x_) value = normal(random);
  }

  /// Rounding the activations is part of neither form's time.
  void quantise(const WeightView& w) {
    const auto rows = static_cast<std::size_t>(rows_);
    const std::size_t width = static_cast<std::size_t>(in_), blocks = int8_blocks(in_), sums = int8_sums(in_);
    codes_.resize(rows * width);
    scales_.resize(rows * blocks);
    sums_.resize(rows * sums);
    int8_ = {int8_order(w), rows_, in_, codes_.data(), scales_.data(), sums_.data()};
    for (std::size_t r = 0; r < rows; ++r) {
      quantise_row(x_.data() + r * static_cast<std::size_t>(in_), in_, int8_.order, codes_.data() + r * width,
          scales_.data() + r * blocks, sums_.data() + r * sums);
    }
  }

  void run(Form form, const WeightView& w, float* y, int first, int last) const {
    thread_local std::vector<float> scratch;
    if (form == Form::float32) {
      scratch.resize(static_cast<std::size_t>(kLinearTile) * static_cast<std::size_t>(w.in));
      linear(x_.data(), rows_, w, y, first, last, scratch.data());
    } else {
      scratch.resize(int8_scratch(w) / sizeof(float) + 1);
      linear_int8(int8_, w, nullptr, y, first, last, reinterpret_cast<std::byte*>(scratch.data()));
    }
  }

 private:
  int rows_, in_;
  std::vector<float> x_, scales_, sums_;
  std::vector<std::int8_t> codes_;
  Int8Rows int8_;
};

struct Case {
  Isa isa;
  Form form;
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
  static const double best = [] {
    const cli::ReadMeter meter(available_cores(), std::size_t{1} << 30);
    double gbps = 0;
    for (int i = 0; i < 8; ++i) gbps = std::max(gbps, meter.gbps());
    return gbps;
  }();
  return best;
}

/// Largest difference to the reference over the largest value.
double difference(const Case& c, const Product& product, const WeightView& w) {
  const auto size = static_cast<std::size_t>(c.rows) * static_cast<std::size_t>(c.out);
  std::vector<float> expected(size), found(size);
  for (const int first : {0, std::max(0, c.out - kChecked)}) {
    const int last = std::min(c.out, first + kChecked);
    use_isa(Isa::reference);
    product.run(c.form, w, expected.data(), first, last);
    use_isa(c.isa);
    product.run(c.form, w, found.data(), first, last);
  }
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (!std::isfinite(found[i])) return INFINITY;
    worst = std::max(worst, std::abs(static_cast<double>(found[i]) - expected[i]));
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
  }
  return worst / largest;
}

void run(benchmark::State& state, const Case& c) {
  MatrixPool& pool = pool_of(c);
  Product product(c.rows, pool.next());
  if (c.form == Form::int8) product.quantise(pool.next());
  std::vector<float> y(static_cast<std::size_t>(c.rows) * static_cast<std::size_t>(c.out));
  if (const double apart = difference(c, product, pool.next()); !(apart < kClose)) {
    state.SkipWithError(fmt::format("differs from the reference by {:.2g}", apart).c_str());
    return;
  }
  use_isa(c.isa);
  ThreadPool threads(available_cores());
  for ([[maybe_unused]] const auto _ : state) {
    const WeightView& w = pool.next();
    threads.parallel_for(c.out, kGrain, [&](int first, int last) { product.run(c.form, w, y.data(), first, last); });
    benchmark::DoNotOptimize(y.data());
  }
  const double bytes = static_cast<double>(pool.bytes());
  using benchmark::Counter;
  state.counters["gbps"] = Counter(bytes / 1e9, Counter::kIsIterationInvariantRate);
  state.counters["share"] = Counter(bytes / 1e9 / bandwidth(), Counter::kIsIterationInvariantRate);
}

void add_case(const Case& c) {
  const std::string format = c.bits == 16 ? "bf16" : fmt::format("affine{}", c.bits);
  const char* const form = c.form == Form::int8 ? "linear_int8" : "linear";
  benchmark::RegisterBenchmark(
      fmt::format("{}/{}/{}/{}x{}/rows:{}", form, name_of(c.isa), format, c.out, c.in, c.rows).c_str(),
      [c](benchmark::State& state) { run(state, c); })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

void add_cases() {
  for (const auto& [out, in] : {std::pair{1024, 3584}, {3584, 1024}, {248320, 1024}}) {
    for (const int bits : {4, 8, 16}) {
      for (const Form form : {Form::float32, Form::int8}) {
        if (form == Form::int8 && bits == 16) continue;  // of affine matrices alone
        for (const Isa isa : available_isas()) {
          for (const int rows : {1, 2, 4, 8, 16, 64}) add_case({isa, form, bits, out, in, rows});
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
