// model/families/step3p5_names.h: the tensor names of Step checkpoints, from every tool that writes them.
#pragma once

#include <map>
#include <string>

#include "base/report.h"
#include "checkpoint/checkpoint.h"
#include "model/contract.h"

namespace foresay {

struct Step35Names {
  std::map<std::string, TensorView> trunk;  ///< "layers.3.mlp.switch_mlp.gate_proj.weight", "lm_head.weight"
  std::map<std::string, TensorView> head;   ///< by depth: "layers.0.eh_proj.weight", "layers.0.self_attn.q_proj.weight"
  bool has_original_names = false;          ///< names that MLX conversion changes
  bool has_converted_names = false;         ///< names that only MLX conversion makes
};

/// Sorts the checkpoint's tensors. Layers behind the trunk's own are the head's, unless `head` holds them from
/// elsewhere. Throws ErrorCode::checkpoint for one parameter under two names.
[[nodiscard]] Step35Names step3p5_names(const Checkpoint& checkpoint, const HeadTensors& head, int layers);

}  // namespace foresay
