// decode/sample/distribution.h: a next-token distribution after every transform.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "foresay/sampling.h"
#include "foresay/token.h"

namespace foresay {

/// Probabilities of the ids that can be emitted; all others have probability 0. Ids ascend; probabilities are positive
/// and sum to 1 within rounding.
struct Distribution {
  std::vector<TokenId> ids;
  std::vector<double> p;

  [[nodiscard]] double probability(TokenId id) const;  ///< 0 when the id is not in the support
  [[nodiscard]] TokenId most_likely() const;           ///< lowest id among equals
};

/// The highest logit below vocab_limit, lowest id among equals. Throws ErrorCode::internal on a non-finite logit.
[[nodiscard]] TokenId argmax(std::span<const float> logits, TokenId vocab_limit);

/// -1 when a token can be drawn from the row. Else the id of the first logit that is NaN or +inf, or 0 when every id
/// below vocab_limit is masked (-inf).
[[nodiscard]] int first_not_finite(
    std::span<const float> logits, TokenId vocab_limit = std::numeric_limits<TokenId>::max());

/// Applies the transforms of `options` to one row of logits [V].
/// Greedy gives all mass to argmax. Throws ErrorCode::internal when a logit is not finite (-inf is allowed: a masked
/// id).
[[nodiscard]] Distribution shape(std::span<const float> logits, const SamplingOptions& options);

/// max(p - q, 0), normalised (Leviathan et al. 2023). When p == q everywhere nothing is left: returns p.
[[nodiscard]] Distribution residual(const Distribution& p, const Distribution& q);

}  // namespace foresay
