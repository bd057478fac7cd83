// model/layers/moe.h: a mixture of experts, as several families have it.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "model/layers/layers.h"

namespace foresay {

/// Sizes of a mixture, as a config gives them.
struct MoeShape {
  int experts = 0, chosen = 0, width = 0;
  int shared_width = 0;       ///< 0: no shared expert
  bool shared_gated = false;  ///< the shared expert is multiplied by the sigmoid of shared_expert_gate
};

/// The routed experts' matrices under `prefix` ("layers.0.mlp."), in any form that checkpoints have:
///   switch_mlp.{gate,up,down}_proj               stacked [E, out, in]
///   experts.gate_up_proj, experts.down_proj      fused [E, 2 * width, D], gate rows first, and [E, D, width]; raw ones
///                                                also transposed, [E, D, 2 * width] and [E, width, D]
///   experts.<e>.{gate,up,down}_proj              numbered
/// Nothing is copied but transposed matrices. Throws ErrorCode::checkpoint naming what is missing or misshapen.
[[nodiscard]] ExpertMlps load_experts(
    WeightSource& source, const std::string& prefix, const MoeShape& shape, int hidden, Ops& ops);

/// residual + the chosen experts + the shared expert.
struct Moe {
  RouterSpec spec;
  Matrix router;  ///< [E, D]
  ExpertMlps experts;
  std::optional<GatedMlp> shared;
  std::optional<Matrix> shared_gate;  ///< [1, D]

  /// Takes `gate`, the experts, shared_expert and shared_expert_gate under `prefix`. `spec` is taken as it is.
  static Moe load(
      WeightSource& source, const std::string& prefix, const MoeShape& shape, int hidden, RouterSpec spec, Ops& ops);
  [[nodiscard]] Tensor forward(Ops& ops, const Tensor& x, const Tensor& residual) const;  // x [R, D]
};

}  // namespace foresay
