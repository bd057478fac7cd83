#include "decode/sample/chance.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "base/error.h"
#include "decode/sample/scan.h"

namespace foresay {
namespace {

/// Gumbel-max over a row without its normaliser: ratios of weights are all that a draw looks at.
class RowDraw {
 public:
  RowDraw(
      const RowSoftmax& row, const Distribution* taken, const KeyedNoise& noise, std::uint32_t index, Purpose purpose)
      : row_(row), taken_(taken), noise_(noise), index_(index), purpose_(purpose) {}

  /// Nothing (-1) where all is taken.
  TokenId run() {
    offer(row_.peak().column);  // first, for what it scores is already a high bar
    if (taken_ != nullptr) offer_some();
    std::size_t begin = 0;
    // Outside these ranges the bounds of a contest do not hold (scan.h).
    if (row_.temperature() <= 1e6 && std::abs(row_.peak().logit) <= 1e30f) {
      begin = std::min(row_.size(), row_.row().plain_columns());
      look_at_contenders(row_.row().logits.first(begin));
    }
    for (std::size_t column = begin; column < row_.size(); ++column) {
      if (row_.log_weight(column) + KeyedNoise::kGumbelMax >= best_) offer(column);
    }
    return best_ > -kInfinity ? row_.row().id(winner_) : -1;
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  /// A bar from all over the row: of a residual the peak and long stretches may be gone, and without a bar each of
  /// their ids would be looked at.
  void offer_some() {
    constexpr std::size_t kSome = 256;
    const std::size_t stride = std::max<std::size_t>(1, row_.size() / kSome);
    for (std::size_t column = 0; column < row_.size(); column += stride) offer(column);
  }

  /// Columns that are ids themselves.
  void look_at_contenders(std::span<const float> logits) {
    const PhiloxInputs inputs = noise_.inputs(index_, purpose_);
    const auto now = [&] { return contest(inputs, row_.peak().logit, row_.temperature(), best_); };
    for (Hits hits = next_contenders(logits, 0, now()); hits.mask != 0;
        hits = next_contenders(logits, hits.first + kHitGroup, now())) {
      for (std::uint64_t mask = hits.mask; mask != 0; mask &= mask - 1) {
        offer(hits.first + static_cast<std::size_t>(std::countr_zero(mask)));
      }
    }
  }

  void offer(std::size_t column) {
    const double score = log_weight(column) + noise_.gumbel(index_, purpose_, row_.row().id(column));
    if (score > best_ || (score == best_ && column < winner_)) {
      best_ = score;
      winner_ = column;
    }
  }

  /// Relative to the peak's; -inf for what cannot be drawn.
  [[nodiscard]] double log_weight(std::size_t column) const {
    if (taken_ == nullptr) return row_.log_weight(column);
    const double left = row_.probability(column) - taken_->probability(row_.row().id(column));
    return left > 0 ? std::log(left * row_.total()) : -kInfinity;
  }

  const RowSoftmax& row_;
  const Distribution* taken_;
  const KeyedNoise& noise_;
  std::uint32_t index_;
  Purpose purpose_;
  std::size_t winner_ = 0;
  double best_ = -kInfinity;
};

}  // namespace

TokenId KeyedChance::draw(const Distribution& d, std::uint32_t index, Purpose purpose) {
  if (const RowSoftmax* row = d.row()) {
    const TokenId id = RowDraw(*row, d.taken(), noise_, index, purpose).run();
    return id >= 0 ? id : RowDraw(*row, nullptr, noise_, index, purpose).run();
  }
  const std::vector<TokenId>& ids = d.ids();
  const std::vector<double>& p = d.p();
  if (ids.empty()) fail(ErrorCode::internal, "[sample] draw at index {}: the distribution is empty", index);
  if (ids.size() == 1) return ids.front();

  // The favourite goes first: what it scores is already a high bar.
  const auto favourite = static_cast<std::size_t>(std::ranges::max_element(p) - p.begin());
  TokenId winner = ids[favourite];
  double best = std::log(p[favourite]) + noise_.gumbel(index, purpose, winner);

  // ln p - ln(-ln u) > best  <=>  p > e^best (-ln u), and -ln u >= 1 - u >= 2^-33. So an id with p < e^best 2^-33 needs
  // no noise, and one with p < e^best (1 - u) no logarithm. The margin keeps both clear of rounding.
  constexpr double kMargin = 1 - 1e-9;
  double bar = std::exp(best) * kMargin;
  std::uint32_t block = ~std::uint32_t{0};  // no token's: ids are below 2^31
  std::array<double, 4> uniforms{};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (p[i] < bar * 0x1p-33 || i == favourite) continue;
    const TokenId id = ids[i];
    const auto counter = static_cast<std::uint32_t>(id);
    if (counter / 4 != block) {
      block = counter / 4;
      uniforms = noise_.uniforms(index, purpose, block);
    }
    if (p[i] < bar * (1 - uniforms[counter % 4])) continue;
    const double score = std::log(p[i]) + noise_.gumbel(index, purpose, id);
    if (score > best || (score == best && id < winner)) {
      winner = id;
      best = score;
      bar = std::exp(best) * kMargin;
    }
  }
  return winner;
}

bool KeyedChance::happens(double probability, std::uint32_t index, Purpose purpose) {
  return noise_.uniform(index, purpose) < probability;
}

}  // namespace foresay
