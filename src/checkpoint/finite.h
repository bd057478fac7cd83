// checkpoint/finite.h: finding damage in weights.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"

namespace foresay {

/// The first value that is NaN or infinite in any float tensor, trunk then head: "model.layers.3.mlp.up_proj.weight in
/// FILE: value 17 is nan". Empty when all are finite. Cost: reads the whole checkpoint; meant for explaining a failure.
[[nodiscard]] std::optional<std::string> find_non_finite(const Checkpoint& checkpoint);

}  // namespace foresay
