// model/families/qwen3_5_repairs.h: what circulating mixture-of-experts head files lack, and what stands in for it.
#pragma once

#include <map>
#include <string>

#include "base/report.h"
#include "model/families/qwen3_5_config.h"
#include "model/weight_source.h"

namespace foresay {

/// Some files of mixture heads hold only `fc`, q_proj, o_proj and the experts. Supplies, with one warning each:
///   k_proj, v_proj                  zeros: the attention branch is then zero
///   mlp.gate, shared_expert_gate    those of the trunk's last full-attention layer
///   norms                           the identity
/// A dense head, and anything else that is missing, is left alone: loading then names it. `trunk` has internal names.
void repair_head(WeightSource& head, const std::map<std::string, TensorView>& trunk, const Qwen35Config& config,
    bool zero_centred_norms, Report& report);

}  // namespace foresay
