// model/vocabulary_subset.h: the part of a vocabulary that a head drafts from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "foresay/token.h"

namespace foresay {

/// All ids below `low`, then `extra`: columns of a compact row of logits [low + extra.size()], in ascending order of
/// their ids.
struct VocabularySubset {
  int low = 0;
  std::vector<TokenId> extra;  ///< ascending, each >= low and once

  [[nodiscard]] int size() const { return low + static_cast<int>(extra.size()); }
  [[nodiscard]] TokenId id(std::size_t column) const {
    const auto below = static_cast<std::size_t>(low);
    return column < below ? static_cast<TokenId>(column) : extra[column - below];
  }
  /// How many columns hold ids below `limit`.
  [[nodiscard]] std::size_t columns_below(TokenId limit) const {
    if (limit <= low) return static_cast<std::size_t>(std::max(limit, 0));
    return static_cast<std::size_t>(low + (std::ranges::lower_bound(extra, limit) - extra.begin()));
  }
  [[nodiscard]] std::optional<std::size_t> column(TokenId id) const {
    const std::size_t at = columns_below(id);
    const bool is_in = id >= 0 && at < static_cast<std::size_t>(size()) && this->id(at) == id;
    return is_in ? std::optional(at) : std::nullopt;
  }
};

}  // namespace foresay
