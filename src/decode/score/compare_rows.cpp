#include "decode/score/compare_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace foresay {

void RowComparison::add(const LogRow& reference, const LogRow& run, std::optional<TokenId> next) {
  divergences_.push_back(divergence(reference, run));
  agreed_ += reference.best == run.best ? 1 : 0;
  for (std::size_t i = 0; i < reference.logits.size(); ++i) {
    if (reference.logits[i] == run.logits[i]) continue;  // masked in both
    logit_difference_ = std::max(logit_difference_, std::fabs(double{reference.logits[i]} - double{run.logits[i]}));
  }
  if (!next) return;
  nats_ -= reference[*next];
  ++predicted_;
}

RowFigures RowComparison::figures() const {
  std::vector<double> sorted = divergences_;
  std::ranges::sort(sorted);
  const auto rows = static_cast<double>(sorted.size());
  RowFigures figures;
  figures.rows = static_cast<std::int64_t>(sorted.size());
  figures.kl_mean = std::accumulate(divergences_.begin(), divergences_.end(), 0.0) / rows;
  figures.kl_99 = sorted.at((99 * sorted.size() + 99) / 100 - 1);
  figures.kl_max = sorted.back();
  figures.agreement = static_cast<double>(agreed_) / rows;
  figures.logit_difference = logit_difference_;
  figures.reference_perplexity = std::exp(nats_ / static_cast<double>(predicted_));
  return figures;
}

}  // namespace foresay
