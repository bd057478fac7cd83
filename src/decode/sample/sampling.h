// decode/sample/sampling.h: what a request asks of the sampler.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "base/token.h"

namespace foresay {

/// How drafts are checked under sampling (docs/numerics.md).
enum class Acceptance {
  ratio,    ///< min(1, p/q) and residual: exact in distribution
  coupled,  ///< draft and target share their noise: the very ids of plain decoding with the same seed
};

/// Transforms in the order they apply (mlx-lm's): top-p, min-p, top-k on the unscaled distribution, then temperature.
struct SamplingOptions {
  double temperature = 0.0;  ///< 0 is greedy
  int top_k = 0;             ///< 0 is off
  double top_p = 1.0;        ///< in (0, 1]; 1 is off
  double min_p = 0.0;        ///< in [0, 1); 0 is off
  std::optional<std::uint64_t> seed = std::nullopt;
  std::optional<Acceptance> acceptance = std::nullopt;  ///< empty: coupled with a seed, ratio without

  /// Ids at or above are never emitted: rows of padding behind the tokenizer's vocabulary.
  TokenId vocab_limit = std::numeric_limits<TokenId>::max();

  [[nodiscard]] bool greedy() const { return temperature == 0.0; }
  [[nodiscard]] Acceptance effective_acceptance() const {
    return acceptance.value_or(seed ? Acceptance::coupled : Acceptance::ratio);
  }
};

/// Throws ErrorCode::usage naming the first option that is out of range or not a number.
void validate(const SamplingOptions& options);

}  // namespace foresay
