// model/layers/recycle.h: which hidden state a head hands to its next step, as its contract says.
#pragma once

#include "model/contract.h"
#include "model/ops.h"

namespace foresay {

/// The states that a head has at hand, [n, D] each.
struct HeadStates {
  Tensor pre_norm, post_norm, fused, embedding, previous;
};

[[nodiscard]] Tensor recycled_state(Ops& ops, const RecycledHidden& recycled, const HeadStates& states);

}  // namespace foresay
