// model/families/step3p5_norms.h: how the norms of a Step checkpoint are stored.
#pragma once

#include <map>
#include <string>

#include "model/families/step3p5_names.h"
#include "model/registry.h"

namespace foresay {

/// One decision for the trunk, by its names: MLX conversion renames and adds 1 together. Without either kind of name,
/// by the mean of the input norms. Warns when names and mean disagree.
[[nodiscard]] Decided<NormEncoding> step3p5_trunk_norms(
    const Checkpoint& checkpoint, const Step35Names& names, Report& report);

/// Replaces the norms of the head by their gains, in float32: as it is stated (caller, files), else each by its own
/// mean, below 0.5 stored minus 1. Notes how many were shifted, and warns of depths in which only some were.
[[nodiscard]] Decided<NormEncoding> settle_head_norms(
    const FamilyRequest& request, std::map<std::string, TensorView>& head);

}  // namespace foresay
