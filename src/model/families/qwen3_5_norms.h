// model/families/qwen3_5_norms.h: whether norm gains are stored as they are or minus one. A wrong decision about the
// head shows only as acceptance near zero, so each decision carries its reason.
#pragma once

#include <optional>

#include "base/report.h"
#include "checkpoint/checkpoint.h"
#include "model/contract_sources.h"
#include "model/weight_source.h"

namespace foresay {

/// Raw (zero-centred) or MLX (absolute), decided once for the whole trunk, by the layout of the convolutions where
/// there are any, else by names, scales and metadata; never from the presence of a head. Warns where the signs
/// disagree.
[[nodiscard]] Decided<NormEncoding> decide_trunk_norms(const Checkpoint& checkpoint, Report& report);

/// One decision for all seven norms of the head: what was asked for, foresay.json, the manifest, the config, a raw
/// trunk around it, else statistics. A rule per tensor (mean below 0.5) would leave raw q_norm, k_norm and norm
/// unshifted: their means are 0.7 to 2.6.
[[nodiscard]] Decided<NormEncoding> decide_head_norms(const Checkpoint& checkpoint,
    const std::optional<Decided<NormEncoding>>& declared, const WeightSource& head, const ContractOverrides& overrides,
    const StatedContract& stated, NormEncoding trunk);

/// Throws ErrorCode::checkpoint where a head norm's mean gain is near zero: it would silence the head.
void check_head_gains(const Checkpoint& checkpoint, NormEncoding encoding);

}  // namespace foresay
