// model/families/step3p5_config.h: the config keys of the step3p5 family, checked (docs/families/step3p5.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/report.h"
#include "checkpoint/checkpoint.h"
#include "model/cache/shapes.h"
#include "model/ops.h"

namespace foresay {

/// What differs from layer to layer.
struct Step35Layer {
  int heads = 0, kv_heads = 0;
  int window = 0;  ///< 0: full attention
  Rope rope;
  float limit = 0, shared_limit = 0;  ///< clamps of routed experts; of the shared expert and of a dense MLP
};

struct Step35Config {
  int hidden = 0, layers = 0, vocab = 0, intermediate = 0, context = 0, head_dim = 0;
  float norm_eps = 1e-5f;
  std::vector<Step35Layer> trunk;  ///< [layers]
  std::vector<Step35Layer> heads;  ///< by draft depth, as many as the config declares
  bool tied = false;
  std::optional<std::vector<int>> sparse;  ///< layers that the config calls mixtures; the tensors decide
  int chosen = 0, expert_width = 0, shared_width = 0;
  bool normalise_chosen = true, router_bias = true;
  bool head_gates = true;              ///< attention has a gate per head
  std::optional<float> router_factor;  ///< required where there are experts

  /// Throws ErrorCode::checkpoint for missing, impossible or contradictory values, ErrorCode::unsupported for variants
  /// that no release has (sinks, other routers, no norms of queries and keys).
  static Step35Config read(const Checkpoint& checkpoint);
};

/// How many MTP layers config.json declares: the first of three keys that is not zero.
[[nodiscard]] int step3p5_head_layers(const Checkpoint& checkpoint);

}  // namespace foresay
