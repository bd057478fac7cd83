// decode/evaluate.h: what a model computes for given ids, trunk and head, without sampling. The measure behind goldens
// and `eval`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "foresay/token.h"
#include "model/model.h"

namespace foresay {

/// An intermediate tensor under its name (model/tap.h), its rows in order of position.
struct NamedRows {
  std::string name;
  int width = 0;
  std::vector<float> values;  ///< [rows, width]
};

/// Everything the model says about `ids` [P]. All float32, row-major.
struct Evaluation {
  int positions = 0, hidden = 0, vocab = 0;
  std::vector<float> logits;                             ///< [P, V] trunk, predicts the next id
  std::vector<float> hidden_pre_norm, hidden_post_norm;  ///< [P, D]
  /// mtp_logits[s-1] is [P - s, V]: draft step s of a block that starts at row t. It has read the hidden state of t and
  /// the ids t+1 .. t+s, and predicts id t+s+1. Steps without rows are absent.
  std::vector<std::vector<float>> mtp_logits;
  /// What families and layers name, in order of execution; those of draft step s begin with "mtp.s." and have the rows
  /// of mtp_logits[s-1]. Empty unless asked for.
  std::vector<NamedRows> layers;
};

/// Throws ErrorCode::usage for an id outside the vocabulary.
void check_ids(std::span<const TokenId> ids, const ModelInfo& info);

/// Runs the trunk in chunks of `chunk` rows (0: all at once) and, up to `depth` steps (capped by the head), the head,
/// forced to the given ids. With `layers`, also keeps every named intermediate tensor. Throws ErrorCode::usage for no
/// ids, an id outside the vocabulary or more ids than the context holds.
[[nodiscard]] Evaluation evaluate(
    const Model& model, std::span<const TokenId> ids, int depth, int chunk = 0, bool layers = false);

}  // namespace foresay
