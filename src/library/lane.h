// library/lane.h: which lane computes, and where.
#pragma once

#include <memory>
#include <string>

#include "base/report.h"
#include "model/ops.h"

namespace foresay {

struct LaneOptions {
  std::string lane = "auto";         ///< cpu (own kernels, identical ids at every depth), mlx, auto
  std::string device = "auto";       ///< where the mlx lane computes: cpu, gpu, auto
  int threads = 0;                   ///< of the cpu lane; 0 is every core this process may use
  std::string activations = "auto";  ///< arithmetic of the cpu lane: float, int8, auto (int8)
};

/// The lane that is asked for. `auto` is the MLX lane where MLX has a GPU and nothing else is asked for that only the
/// CPU lane has, else the CPU lane. Throws ErrorCode::usage for options that contradict each other, a lane that this
/// build lacks and a GPU that is not there; loads nothing. Warns where only the plain kernels run.
[[nodiscard]] std::unique_ptr<Ops> make_ops(const LaneOptions& options, Report& report);

}  // namespace foresay
