#include "cli/lane.h"

#include "cli/option_values.h"

namespace foresay::cli {

void add_lane_options(CLI::App& app, LaneOptions& options) {
  app.add_option("--lane", options.lane,
         "What computes: cpu (own kernels, identical ids at every depth), mlx, or auto (mlx where it has a GPU)")
      ->check(one_of({"auto", "cpu", "mlx"}))
      ->capture_default_str();
  app.add_option("--device", options.device, "Where the mlx lane computes; auto is a GPU where there is one")
      ->check(one_of({"auto", "cpu", "gpu"}))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads of the cpu lane; 0 is every core this process may use")
      ->check(whole_number(0, 1024))
      ->capture_default_str();
  app.add_option("--cpu-activations", options.activations,
         "Arithmetic of the cpu lane: int8 (activations of quantised matrices as int8, KV cache in bf16), float "
         "(float32 "
         "activations and KV cache: closest to the references), or auto (int8)")
      ->check(one_of({"auto", "float", "int8"}))
      ->capture_default_str();
}

}  // namespace foresay::cli
