// foresay/stats.h: what one generation cost and what its drafts were worth.
#pragma once

#include <vector>

namespace foresay {

struct Stats {
  int prompt_tokens = 0;  ///< read so far
  int generated = 0;
  int passes = 0;              ///< target passes after the prompt; each verified one block
  int depth = 0;               ///< effective depth: what drafted, not what was asked for
  std::vector<long> drafted;   ///< [depth] blocks that had a draft at this position
  std::vector<long> accepted;  ///< [depth] blocks whose draft at this position survived
  double prompt_seconds = 0, decode_seconds = 0;

  [[nodiscard]] double prompt_tok_s() const { return prompt_seconds > 0 ? prompt_tokens / prompt_seconds : 0; }
  /// The first token comes out of the prompt's pass and is not counted.
  [[nodiscard]] double decode_tok_s() const {
    return decode_seconds > 0 && generated > 1 ? (generated - 1) / decode_seconds : 0;
  }
  [[nodiscard]] double tokens_per_pass() const {
    return passes > 0 && generated > 1 ? static_cast<double>(generated - 1) / passes : 0;
  }
};

}  // namespace foresay
