// decode/score/log_row.h: rows of logits as distributions at temperature 1, and how far two of them are apart.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "foresay/token.h"

namespace foresay {

/// The softmax of one row of logits [V] over all of its ids, padding of the vocabulary included, as programs that
/// report perplexity take it. Borrows the row.
struct LogRow {
  std::span<const float> logits;
  double log_norm = 0;  ///< log of the sum of exp(logit)
  TokenId best = -1;    ///< the most likely id, the lowest among equals

  /// Log-probability in nats; -inf for a masked id.
  [[nodiscard]] double operator[](TokenId id) const { return logits[static_cast<std::size_t>(id)] - log_norm; }
};

/// Nothing for a row with NaN or +inf, or with every id masked; `problem` then says why.
[[nodiscard]] std::optional<LogRow> log_row(std::span<const float> logits, std::string& problem);

/// KL(p || q) in nats, never negative; infinite where q masks what p allows.
[[nodiscard]] double divergence(const LogRow& p, const LogRow& q);

/// Sum of min(p, q): the probability that a draft drawn from q survives against p (Leviathan et al. 2023).
[[nodiscard]] double overlap(const LogRow& p, const LogRow& q);

}  // namespace foresay
