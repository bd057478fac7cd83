// decode/sample/row.h: one row of logits: its peak, and whether a token can be drawn from it.
#pragma once

#include <limits>
#include <span>
#include <string>

#include "foresay/token.h"

namespace foresay {

inline constexpr TokenId kNoLimit = std::numeric_limits<TokenId>::max();

/// The part of a row that can be emitted: ids below vocab_limit.
[[nodiscard]] std::span<const float> emittable(std::span<const float> logits, TokenId vocab_limit);

/// Why no token can be drawn from the row, in words; empty when one can. NaN and +inf anywhere make a row unusable,
/// also behind vocab_limit: a forward pass that makes NaN anywhere is not to be trusted elsewhere. -inf masks an id; a
/// row whose ids are all masked is unusable too.
[[nodiscard]] std::string row_problem(std::span<const float> logits, TokenId vocab_limit = kNoLimit);

/// The highest logit and its id, the lowest among equals.
struct Peak {
  float logit = 0;
  TokenId id = -1;
};

/// The peak below vocab_limit. Throws ErrorCode::internal with row_problem()'s words where there is one.
[[nodiscard]] Peak find_peak(std::span<const float> logits, TokenId vocab_limit = kNoLimit);

}  // namespace foresay
