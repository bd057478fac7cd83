#include "decode/sample/distribution.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <limits>

#include "decode/sample/exponential.h"
#include "decode/sample/scan.h"

namespace foresay {
namespace {

/// max(p - q, 0) over the ids of a list or a row: `of(i)` is the i-th id and its probability.
template <typename Of>
void subtract(std::size_t size, const Distribution& q, Of of, std::vector<TokenId>& ids, std::vector<double>& excess) {
  double total = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const auto [id, p] = of(i);
    const double left = p - q.probability(id);
    if (left <= 0) continue;
    ids.push_back(id);
    excess.push_back(left);
    total += left;
  }
  for (double& each : excess) each /= total;
}

}  // namespace

RowSoftmax::RowSoftmax(LogitRow row, Peak peak, double temperature)
    : row_(std::move(row)),
      peak_(peak),
      temperature_(temperature),
      scale_(std::min(1 / temperature, std::numeric_limits<double>::max())) {}  // 0 * inf would be NaN

double RowSoftmax::probability(std::size_t column) const {
  return weight_of(log_weight(column)) / total();
}

double RowSoftmax::total() const {
  if (total_ == 0) total_ = sum_exp(row_.logits, peak_.logit, scale_);
  return total_;
}

double Distribution::probability(TokenId id) const {
  if (row_ && !taken_) {
    const auto column = row_->row().column(id);
    return column && *column < row_->size() ? row_->probability(*column) : 0.0;
  }
  const List& all = list();
  const auto at = std::ranges::lower_bound(all.ids, id);
  return at != all.ids.end() && *at == id ? all.p[static_cast<std::size_t>(at - all.ids.begin())] : 0.0;
}

TokenId Distribution::most_likely() const {
  if (row_ && !taken_) return row_->peak().id;
  const List& all = list();
  assert(!all.ids.empty() && all.ids.size() == all.p.size());
  return all.ids[static_cast<std::size_t>(std::ranges::max_element(all.p) - all.p.begin())];
}

const Distribution::List& Distribution::list() const {
  if (!list_) list_ = row_ ? list_of_row() : List{};
  return *list_;
}

Distribution::List Distribution::list_of_row() const {
  const std::size_t size = row_->size();
  const auto of = [&](std::size_t column) { return std::pair(row_->row().id(column), row_->probability(column)); };
  List all;
  if (taken_) subtract(size, *taken_, of, all.ids, all.p);
  if (!all.ids.empty()) return all;
  all.ids.reserve(size);
  all.p.reserve(size);
  for (std::size_t column = 0; column < size; ++column) {
    const auto [id, p] = of(column);
    if (p <= 0) continue;
    all.ids.push_back(id);
    all.p.push_back(p);
  }
  return all;
}

Distribution residual(const Distribution& p, const Distribution& q) {
  if (p.row_ && !p.taken_) {
    Distribution left;
    left.row_ = p.row_;
    left.taken_ = std::make_shared<const Distribution>(q);
    return left;
  }
  std::vector<TokenId> ids;
  std::vector<double> excess;
  const auto& all = p.list();
  subtract(all.ids.size(), q, [&](std::size_t i) { return std::pair(all.ids[i], all.p[i]); }, ids, excess);
  return ids.empty() ? p : Distribution(std::move(ids), std::move(excess));
}

}  // namespace foresay
