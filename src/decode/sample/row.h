// decode/sample/row.h: one row of logits: who keeps it, its peak, and whether a token can be drawn from it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foresay/token.h"
#include "model/vocabulary_subset.h"

namespace foresay {

inline constexpr TokenId kNoLimit = std::numeric_limits<TokenId>::max();

/// Logits [V] and what keeps them; a drafter's may be those of a part of the vocabulary, with columns that are not ids.
/// A distribution made of a row may go on looking at it.
struct LogitRow {
  /// Without an owner the caller keeps the values as long as a distribution of the row is in use.
  LogitRow(std::span<const float> row, std::shared_ptr<const void> keeper = nullptr)
      : logits(row), owner(std::move(keeper)) {}
  LogitRow(const std::vector<float>& row) : logits(row) {}
  LogitRow(std::vector<float>&& row) {  ///< keeps the values itself
    auto kept = std::make_shared<const std::vector<float>>(std::move(row));
    logits = *kept;
    owner = std::move(kept);
  }

  std::span<const float> logits;
  std::shared_ptr<const void> owner;
  std::shared_ptr<const VocabularySubset> vocabulary;  ///< whose ids the columns are; null: column c is id c

  [[nodiscard]] TokenId id(std::size_t column) const {
    return vocabulary ? vocabulary->id(column) : static_cast<TokenId>(column);
  }
  /// Nothing for an id that the row does not have.
  [[nodiscard]] std::optional<std::size_t> column(TokenId id) const {
    if (vocabulary) return vocabulary->column(id);
    const auto at = static_cast<std::size_t>(id);
    return id >= 0 && at < logits.size() ? std::optional(at) : std::nullopt;
  }
  /// Columns that are ids themselves: all, or those in front.
  [[nodiscard]] std::size_t plain_columns() const {
    return vocabulary ? std::min(logits.size(), static_cast<std::size_t>(vocabulary->low)) : logits.size();
  }
};

/// The part of a row that can be emitted: ids below vocab_limit. They are its first columns.
[[nodiscard]] std::span<const float> emittable(const LogitRow& row, TokenId vocab_limit);

/// The highest logit, its id (the lowest among equals) and that id's column.
struct Peak {
  float logit = 0;
  TokenId id = -1;
  std::size_t column = 0;
};

/// The peak below vocab_limit; nothing when no token can be drawn from the row, and `problem` then says why. NaN and
/// +inf anywhere make a row unusable, also behind vocab_limit: a forward pass that makes NaN anywhere is not to be
/// trusted elsewhere. -inf masks an id; a row whose ids are all masked is unusable too.
[[nodiscard]] std::optional<Peak> look_for_peak(const LogitRow& row, TokenId vocab_limit, std::string& problem);

/// Why no token can be drawn from the row, in words; empty when one can.
[[nodiscard]] std::string row_problem(std::span<const float> logits, TokenId vocab_limit = kNoLimit);

/// The peak below vocab_limit. Throws ErrorCode::internal with row_problem()'s words where there is one.
[[nodiscard]] Peak find_peak(std::span<const float> logits, TokenId vocab_limit = kNoLimit);

}  // namespace foresay
