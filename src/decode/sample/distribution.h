// decode/sample/distribution.h: a next-token distribution after every transform.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "decode/sample/row.h"
#include "foresay/token.h"

namespace foresay {

/// The softmax of a whole row at a temperature, worked out where it is looked at: one id costs one exponential, and
/// only who needs probabilities rather than their ratios pays for the sum over the row.
class RowSoftmax {
 public:
  /// `row` holds the logits that can be emitted alone; `peak` is its own.
  RowSoftmax(LogitRow row, Peak peak, double temperature);

  [[nodiscard]] const LogitRow& row() const { return row_; }
  [[nodiscard]] std::size_t size() const { return row_.logits.size(); }  ///< columns
  [[nodiscard]] Peak peak() const { return peak_; }
  [[nodiscard]] double temperature() const { return temperature_; }
  /// ln p - ln p(peak) of a column.
  [[nodiscard]] double log_weight(std::size_t column) const {
    return (static_cast<double>(row_.logits[column]) - peak_.logit) * scale_;
  }
  [[nodiscard]] double probability(std::size_t column) const;
  [[nodiscard]] double total() const;  ///< 1 / p(peak); the first call walks over the row

 private:
  LogitRow row_;
  Peak peak_;
  double temperature_, scale_;
  mutable double total_ = 0;  ///< 0: not summed yet
};

/// Probabilities of the ids that can be emitted; all others have probability 0. Either a list or the softmax of a row
/// that was not filtered; the latter becomes a list when somebody asks for one. Copies are cheap but for lists. Engine
/// thread only.
class Distribution {
 public:
  Distribution() = default;  ///< no id at all
  /// Ids ascend; probabilities are positive and sum to 1 within rounding.
  Distribution(std::vector<TokenId> ids, std::vector<double> p) : list_(List{std::move(ids), std::move(p)}) {}
  explicit Distribution(RowSoftmax softmax) : row_(std::make_shared<const RowSoftmax>(std::move(softmax))) {}

  [[nodiscard]] double probability(TokenId id) const;  ///< 0 when the id is not in the support
  [[nodiscard]] TokenId most_likely() const;           ///< lowest id among equals

  [[nodiscard]] const std::vector<TokenId>& ids() const { return list().ids; }  ///< the support, ascending
  [[nodiscard]] const std::vector<double>& p() const { return list().p; }       ///< [ids()] positive
  /// The same as a list that looks at no row any more.
  [[nodiscard]] Distribution listed() const { return {ids(), p()}; }

  /// The row that this is the softmax of, or the residual of; null for a list.
  [[nodiscard]] const RowSoftmax* row() const { return row_.get(); }
  /// What a residual takes from row(); null elsewhere.
  [[nodiscard]] const Distribution* taken() const { return taken_.get(); }

 private:
  struct List {
    std::vector<TokenId> ids;
    std::vector<double> p;
  };
  friend Distribution residual(const Distribution& p, const Distribution& q);

  [[nodiscard]] const List& list() const;
  [[nodiscard]] List list_of_row() const;

  std::shared_ptr<const RowSoftmax> row_;
  std::shared_ptr<const Distribution> taken_;
  mutable std::optional<List> list_;
};

/// max(p - q, 0), normalised (Leviathan et al. 2023). When p == q everywhere nothing is left: then it is p.
[[nodiscard]] Distribution residual(const Distribution& p, const Distribution& q);

}  // namespace foresay
