#include "decode/sample/log_probabilities.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "decode/sample/candidates.h"
#include "decode/sample/row.h"
#include "decode/sample/scan.h"

namespace foresay {

TokenLogProbabilities log_probabilities(std::span<const float> logits, TokenId id, int top, TokenId vocab_limit) {
  const auto row = emittable(logits, vocab_limit);
  const double peak = find_peak(logits, vocab_limit).logit;
  const double norm = peak + std::log(sum_exp(row, peak, 1));
  TokenLogProbabilities result;
  result.value = row[static_cast<std::size_t>(id)] - norm;
  if (top <= 0) return result;
  std::vector<Candidate> most = collect(row, peak, kNoFloor, static_cast<std::size_t>(top));
  std::ranges::sort(most, more_likely);
  for (const Candidate& each : most) result.top.push_back({static_cast<TokenId>(each.column), each.logit - norm});
  return result;
}

}  // namespace foresay
