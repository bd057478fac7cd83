#include "decode/score/log_row.h"

#include <algorithm>
#include <cmath>

#include "decode/sample/row.h"

namespace foresay {

std::optional<LogRow> log_row(std::span<const float> logits, std::string& problem) {
  problem = row_problem(logits);
  if (!problem.empty()) return std::nullopt;
  const Peak peak = find_peak(logits);
  double total = 0;
  for (const float logit : logits) total += std::exp(double{logit} - peak.logit);
  return LogRow{logits, peak.logit + std::log(total), peak.id};
}

double divergence(const LogRow& p, const LogRow& q) {
  double sum = 0;
  for (std::size_t i = 0; i < p.logits.size(); ++i) {
    const double log_p = p.logits[i] - p.log_norm;
    const double mass = std::exp(log_p);
    if (mass > 0) sum += mass * (log_p - (q.logits[i] - q.log_norm));
  }
  return std::max(sum, 0.0);  // rounding can leave equal rows below 0
}

double overlap(const LogRow& p, const LogRow& q) {
  double sum = 0;
  for (std::size_t i = 0; i < p.logits.size(); ++i) {
    sum += std::exp(std::min(p.logits[i] - p.log_norm, q.logits[i] - q.log_norm));
  }
  return std::min(sum, 1.0);
}

}  // namespace foresay
