// decode/evaluate.h: what a model computes for given ids, trunk and head, without sampling. The measure behind goldens
// and `eval`.
#pragma once

#include <span>
#include <vector>

#include "foresay/token.h"
#include "model/model.h"

namespace foresay {

/// Everything the model says about `ids` [P]. All float32, row-major.
struct Evaluation {
  int positions = 0, hidden = 0, vocab = 0;
  std::vector<float> logits;                             ///< [P, V] trunk, predicts the next id
  std::vector<float> hidden_pre_norm, hidden_post_norm;  ///< [P, D]
  /// mtp_logits[s-1] is [P - s, V]: draft step s of a block that starts at row t. It has read the hidden state of t and
  /// the ids t+1 .. t+s, and predicts id t+s+1. Steps without rows are absent.
  std::vector<std::vector<float>> mtp_logits;
};

/// Runs the trunk in chunks of `chunk` rows (0: all at once) and, up to `depth` steps (capped by the head), the head,
/// forced to the given ids. Throws ErrorCode::usage for no ids, an id outside the vocabulary or more ids than the
/// context holds.
[[nodiscard]] Evaluation evaluate(const Model& model, std::span<const TokenId> ids, int depth, int chunk = 0);

}  // namespace foresay
