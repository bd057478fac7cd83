// What stands in for the MLX lane in a build that found no MLX.
#include "base/error.h"
#include "model/ops.h"

namespace foresay {

bool has_mlx() {
  return false;
}

bool has_mlx_gpu() {
  return false;
}

std::unique_ptr<Ops> make_mlx_ops(MlxDevice /*device*/) {
  fail(ErrorCode::usage,
      "[mlx] this build has no MLX lane: no MLX was found when it was configured; install MLX (pip install mlx, on "
      "Linux 'mlx[cpu]' or 'mlx[cuda]', or brew install mlx) into .venv or CMAKE_PREFIX_PATH and build again, or use "
      "the cpu lane");
}

}  // namespace foresay
