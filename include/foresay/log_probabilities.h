// foresay/log_probabilities.h: what the target thought of an emitted token.
#pragma once

#include <vector>

#include "foresay/token.h"

namespace foresay {

struct LogProbability {
  TokenId id = -1;
  double value = 0;  ///< natural logarithm, <= 0
};

/// Of one emitted token, from the target's own row at its position: the model's distribution before bias, penalties,
/// filters and temperature. The same at every depth.
struct TokenLogProbabilities {
  double value = 0;                 ///< of the emitted token
  std::vector<LogProbability> top;  ///< the most likely ids, most likely first, lower ids first among equals
};

}  // namespace foresay
