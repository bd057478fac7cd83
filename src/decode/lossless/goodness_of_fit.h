// decode/lossless/goodness_of_fit.h: do counts of drawn tokens fit the distributions they were drawn from?
#pragma once

#include <map>
#include <string>

#include "decode/sample/distribution.h"
#include "foresay/token.h"

namespace foresay {

/// Pearson's test over any number of histograms, each with a distribution of its own.
class GoodnessOfFit {
 public:
  /// Ids that are expected fewer than five times share a cell. A histogram with one cell says nothing.
  void add(const std::map<TokenId, int>& counts, const Distribution& expected);

  /// An id that its distribution cannot give was drawn.
  [[nodiscard]] bool impossible() const { return impossible_; }
  [[nodiscard]] double statistic() const { return statistic_; }
  [[nodiscard]] int freedom() const { return freedom_; }
  /// The probability that a perfect sampler looks as bad as this or worse; 1 where nothing could be compared.
  [[nodiscard]] double p_value() const;

 private:
  double statistic_ = 0;
  int freedom_ = 0;
  bool impossible_ = false;
};

/// P(X >= x) for a chi-square variable.
[[nodiscard]] double chi_square_tail(double x, int freedom);

}  // namespace foresay
