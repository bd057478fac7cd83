// decode/cost/cost_model.h: what a target pass and a draft step cost, and what speculation gains at those costs.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace foresay {

/// Times of passes of `rows` rows whose cache holds CostModel::context positions.
struct PassCost {
  int rows = 0;
  double ms = 0;
  double ms_per_position = 0;  ///< what each further position in the cache adds
};

/// Measured times (decode/cost/measure_costs.h) and what lies between them. A value; any thread.
struct CostModel {
  int context = 0;               ///< positions in the cache when `passes` and `draft` were measured
  std::vector<PassCost> passes;  ///< by rows, ascending; at least one
  PassCost draft;                ///< one draft step; rows is 0 without a head

  /// One target pass over `rows` rows of a sequence with `positions` in its cache. Linear between measured rows, and
  /// beyond them as between the last two.
  [[nodiscard]] double pass_ms(int rows, int positions) const;
  /// One draft step of such a sequence; 0 without a head.
  [[nodiscard]] double draft_ms(int positions) const;

  /// Draft steps and the pass that verifies them: a round at `depth`, sampling not included.
  [[nodiscard]] double round_ms(int depth, int positions) const;
  /// What rounds at `depth` yield.
  ///   acceptance  share of rounds in which draft 1, 2, ... survived (all before it included); 0 where it ends
  [[nodiscard]] double tokens_per_second(int depth, std::span<const double> acceptance, int positions) const;
  /// The probability of a draft to survive, given that those before it did, from which on rounds at `depth` are faster
  /// than plain decoding. Nothing where even 1 is not enough.
  [[nodiscard]] std::optional<double> break_even(int depth, int positions) const;
};

}  // namespace foresay
