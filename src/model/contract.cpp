#include "model/contract.h"

namespace foresay {

std::string_view name_of(HiddenState value) {
  return value == HiddenState::pre_norm ? "pre_norm" : "post_norm";
}

std::string_view name_of(ConcatOrder value) {
  return value == ConcatOrder::embedding_hidden ? "embedding_hidden" : "hidden_embedding";
}

std::string_view name_of(NormEncoding value) {
  return value == NormEncoding::zero_centred ? "zero_centred" : "absolute";
}

}  // namespace foresay
