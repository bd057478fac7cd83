// decode/score/score_text.h: how well a model predicts a text, and how often its head would agree with it.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "decode/score/log_row.h"
#include "foresay/token.h"
#include "model/model.h"

namespace foresay {

/// One draft step, forced to the text's ids as evaluate() does: row t has read the hidden state of t and the ids
/// t+1 .. t+s, and is compared with the target's row at t+s.
struct StepScore {
  std::int64_t positions = 0;
  std::int64_t agreed = 0;    ///< head and target have the same most likely id: a greedy draft survives
  double overlap = 0;         ///< sum over positions of sum(min(p, q)) at temperature 1: a sampled draft survives
  std::int64_t unusable = 0;  ///< positions whose head logits are not finite; they count as rejections

  [[nodiscard]] double agreement() const { return static_cast<double>(agreed) / static_cast<double>(positions); }
  [[nodiscard]] double accept_probability() const { return overlap / static_cast<double>(positions); }
};

struct TextScore {
  std::int64_t tokens = 0, windows = 0;
  std::int64_t predicted = 0;  ///< tokens that a row predicts: all but the first of each window
  std::int64_t correct = 0;    ///< of them, those that are the row's most likely id
  double nats = 0;             ///< sum of -log p over the predicted tokens
  std::vector<StepScore> steps;
  std::string problem;     ///< why scoring ended early: a target row that is not finite; empty otherwise
  bool cancelled = false;  ///< scoring ended early because the caller said so

  [[nodiscard]] double perplexity() const { return std::exp(nats / static_cast<double>(predicted)); }
  [[nodiscard]] double accuracy() const { return static_cast<double>(correct) / static_cast<double>(predicted); }
};

struct ScoreOptions {
  int window = 512;  ///< ids per window, 2 to the context
  int depth = 3;     ///< draft steps, capped by the head
  int chunk = 0;     ///< most rows per pass; 0: as many as memory suggests
  /// Sees the target's row of every token in order; the row lives for the call.
  std::function<void(std::size_t token, const LogRow& row)> on_row = {};
  const std::atomic<bool>* cancel = nullptr;  ///< looked at between passes
};

/// Scores `ids` in windows that do not overlap and know nothing of each other: the first row of a window predicts its
/// second id, the last row predicts nothing that is scored. Memory is bounded by chunks of rows, not by the text.
/// Throws ErrorCode::usage for fewer than 2 ids, an id outside the vocabulary, or a window that is out of range.
[[nodiscard]] TextScore score_text(const Model& model, std::span<const TokenId> ids, const ScoreOptions& options);

}  // namespace foresay
