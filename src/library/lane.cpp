#include "library/lane.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "base/cpu_features.h"
#include "base/error.h"

namespace foresay {
namespace {

void expect_one_of(std::string_view option, std::string_view found, std::initializer_list<std::string_view> values) {
  if (std::ranges::find(values, found) != values.end()) return;
  fail(ErrorCode::usage, "{}: expected one of {}, found \"{}\"", option, fmt::join(values, ", "), found);
}

void warn_of_plain_kernels(Report& report) {
  if (current_isa() != Isa::reference) return;
  report.warn(
      "the plain C++ kernels are running, many times slower than those for AVX2 or for NEON with the dot product, of "
      "which this processor has neither or FORESAY_ISA asked for none");
}

bool wants_mlx(const LaneOptions& options) {
  if (options.lane != "auto") return options.lane == "mlx";
  if (options.device != "auto") return options.device == "gpu";
  return options.threads == 0 && has_mlx_gpu();
}

}  // namespace

std::unique_ptr<Ops> make_ops(const LaneOptions& options, Report& report) {
  expect_one_of("--lane", options.lane, {"auto", "cpu", "mlx"});
  expect_one_of("--device", options.device, {"auto", "cpu", "gpu"});
  expect_one_of("--cpu-activations", options.activations, {"auto", "float", "int8"});
  if (options.threads < 0) fail(ErrorCode::usage, "--threads: expected a whole number >= 0, found {}", options.threads);
  if (!wants_mlx(options)) {
    if (options.device == "gpu") {
      fail(ErrorCode::usage, "--device gpu: expected --lane mlx, found --lane cpu, which computes on the CPU only");
    }
    warn_of_plain_kernels(report);
    return make_cpu_ops(
        options.threads, options.activations == "float" ? CpuActivations::float32 : CpuActivations::int8);
  }
  if (options.threads > 0) {
    fail(ErrorCode::usage,
        "--threads: expected none with the mlx lane, found {}; MLX chooses its own threads, so leave it out or use "
        "--lane cpu",
        options.threads);
  }
  if (options.device == "cpu") return make_mlx_ops(MlxDevice::cpu);
  return make_mlx_ops(options.device == "gpu" ? MlxDevice::gpu : MlxDevice::automatic);
}

}  // namespace foresay
