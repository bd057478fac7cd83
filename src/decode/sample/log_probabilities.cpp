#include "decode/sample/log_probabilities.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "decode/sample/row.h"

namespace foresay {

TokenLogProbabilities log_probabilities(std::span<const float> logits, TokenId id, int top, TokenId vocab_limit) {
  const auto row = emittable(logits, vocab_limit);
  const double peak = find_peak(logits, vocab_limit).logit;
  double total = 0;
  for (const float logit : row) total += std::exp(logit - peak);
  const double norm = peak + std::log(total);

  std::vector<TokenId> ids(row.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto of = [&](TokenId each) { return row[static_cast<std::size_t>(each)]; };
  const auto first = ids.begin() + std::min<std::ptrdiff_t>(top, static_cast<std::ptrdiff_t>(ids.size()));
  if (top > 0) {
    std::partial_sort(ids.begin(), first, ids.end(),
        [&](TokenId a, TokenId b) { return of(a) > of(b) || (of(a) == of(b) && a < b); });
  }
  TokenLogProbabilities result;
  result.value = of(id) - norm;
  for (auto each = ids.begin(); each != first; ++each) {
    if (of(*each) > -std::numeric_limits<float>::infinity()) result.top.push_back({*each, of(*each) - norm});
  }
  return result;
}

}  // namespace foresay
