#include "model/layers/recycle.h"

namespace foresay {
namespace {

const Tensor& state_of(HeadState which, const HeadStates& states) {
  switch (which) {
    case HeadState::pre_norm:
      return states.pre_norm;
    case HeadState::fc:
      return states.fused;
    case HeadState::embedding:
      return states.embedding;
    case HeadState::prev:
      return states.previous;
    case HeadState::post_norm:
      break;
  }
  return states.post_norm;
}

}  // namespace

Tensor recycled_state(Ops& ops, const RecycledHidden& recycled, const HeadStates& states) {
  const Tensor& left = state_of(recycled.left, states);
  if (recycled == RecycledHidden(recycled.left)) return left;
  return ops.mix(left, state_of(recycled.right, states), recycled.alpha);
}

}  // namespace foresay
