// decode/sample/log_probabilities.h: log-probabilities of a row of logits.
#pragma once

#include <span>

#include "foresay/log_probabilities.h"

namespace foresay {

/// log softmax of the row [V] at `id`, and its `top` most likely ids (all when the row has fewer). Ids at or above
/// vocab_limit have no mass. The row must be finite (row_problem) and `id` below the limit.
[[nodiscard]] TokenLogProbabilities log_probabilities(
    std::span<const float> logits, TokenId id, int top, TokenId vocab_limit);

}  // namespace foresay
