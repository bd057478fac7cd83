// decode/sample/distribution.h: a next-token distribution after every transform.
#pragma once

#include <vector>

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

/// max(p - q, 0), normalised (Leviathan et al. 2023). When p == q everywhere nothing is left: returns p.
[[nodiscard]] Distribution residual(const Distribution& p, const Distribution& q);

}  // namespace foresay
