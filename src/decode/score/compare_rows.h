// decode/score/compare_rows.h: how far a run's distributions are from those of a reference run over the same tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "decode/score/log_row.h"

namespace foresay {

/// Figures over all rows that were added; KL(reference || run) in nats.
struct RowFigures {
  std::int64_t rows = 0;
  double kl_mean = 0, kl_99 = 0, kl_max = 0;  ///< kl_99: the smallest value that 99 % of the rows do not exceed
  double agreement = 0;                       ///< share of rows with the same most likely id
  double logit_difference = 0;                ///< largest |logit - logit|
  double reference_perplexity = 0;            ///< over the rows that have a next token
};

/// Rows of two runs, added one by one. Keeps 8 bytes per row.
class RowComparison {
 public:
  /// Rows of the same width; `next` is the token that follows, where one is scored.
  void add(const LogRow& reference, const LogRow& run, std::optional<TokenId> next);
  [[nodiscard]] RowFigures figures() const;  ///< of at least one row that has a next token

 private:
  std::vector<double> divergences_;
  std::int64_t agreed_ = 0, predicted_ = 0;
  double nats_ = 0, logit_difference_ = 0;
};

}  // namespace foresay
