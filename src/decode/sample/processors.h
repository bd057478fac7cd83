// decode/sample/processors.h: what a row's own history does to its logits: bias, penalties, forbidden tokens.
#pragma once

#include <cstddef>
#include <span>

#include "foresay/sampling.h"
#include "foresay/token.h"
#include "model/vocabulary_subset.h"

namespace foresay {

/// The tokens before a row: those that are known, then the drafts ahead of it in its block. A view; drafts that do not
/// survive were never written anywhere, so nothing has to be undone.
struct History {
  std::span<const TokenId> known;    ///< prompt and generated tokens
  std::span<const TokenId> drafted;  ///< drafts ahead of the row

  [[nodiscard]] std::size_t size() const { return known.size() + drafted.size(); }
  [[nodiscard]] TokenId operator[](std::size_t i) const {
    return i < known.size() ? known[i] : drafted[i - known.size()];
  }
};

/// Whether process() would change any row.
[[nodiscard]] bool has_processors(const SamplingOptions& options, std::span<const TokenId> forbidden);

/// Applies to one row of logits, in this order: logit bias, repetition, presence and frequency penalty, bad words,
/// forbidden ids. Ids outside the row are ignored.
///   vocabulary  whose ids the columns are; null: column c is id c
///   forbidden   ids that may not come next: ends of turns before min_tokens
/// Source: mlx-lm 0.32, make_logits_processors (bias and penalties).
void process(std::span<float> logits, const History& history, const SamplingOptions& options,
    std::span<const TokenId> forbidden, const VocabularySubset* vocabulary = nullptr);

}  // namespace foresay
