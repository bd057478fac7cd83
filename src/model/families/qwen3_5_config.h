// model/families/qwen3_5_config.h: the config keys of the qwen3_5 family, checked (docs/families/qwen3_5.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/report.h"
#include "checkpoint/checkpoint.h"
#include "model/contract.h"
#include "model/layers/moe.h"
#include "model/ops.h"

namespace foresay {

struct Qwen35Config {
  int hidden = 0, layers = 0, vocab = 0, intermediate = 0, context = 0;
  int heads = 0, kv_heads = 0, head_dim = 0;
  float norm_eps = 1e-6f;
  RecurrentShape recurrent;
  std::vector<bool> full_attention;  ///< per layer; the others are GatedDeltaNet
  MoeShape moe;                      ///< experts 0 in a dense model
  bool normalise_chosen = true;      ///< the weights of a row's experts sum to 1
  std::vector<bool> sparse;          ///< per layer: a mixture; the others are dense
  Rope rope;
  bool tied = false;
  int head_layers = 0;                                    ///< declared MTP layers
  std::optional<Decided<HiddenState>> hidden_state_mode;  ///< mtp_hidden_state_mode, where given

  /// Throws ErrorCode::checkpoint for missing, impossible or contradictory values, ErrorCode::unsupported for variants
  /// that no released checkpoint has (attn_output_gate false, biases, other activations).
  static Qwen35Config read(const Checkpoint& checkpoint, Report& report);
};

/// What config.json says about the head alone: the declared encoding of its norms, where there is one. Throws
/// ErrorCode::unsupported for several MTP layers or dedicated embeddings: faults of the head, not of the trunk.
[[nodiscard]] std::optional<Decided<NormEncoding>> read_head_config(
    const Checkpoint& checkpoint, const Qwen35Config& config);

}  // namespace foresay
