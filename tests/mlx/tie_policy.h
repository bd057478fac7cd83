// mlx/tie_policy.h: where this lane may choose another id than plain decoding (docs/numerics.md): at a tie.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/noise.h"
#include "decode/sample/shape.h"

namespace foresay {

/// Two ids whose deciding scores differ by less are a tie. Scores of one row differ by less than kRowTolerance between
/// passes, so a tenth of this would do.
inline constexpr double kTau = 1e-3;

/// How far an id that the filters of `options` drop is from staying: in logits for top-k and min-p, in mass for top-p.
[[nodiscard]] inline double distance_from_support(
    std::span<const float> logits, const SamplingOptions& options, TokenId id) {
  const double own = logits[static_cast<std::size_t>(id)];
  std::vector<double> sorted(logits.begin(), logits.end());
  std::ranges::sort(sorted, std::greater());
  double distance = 0;
  if (options.top_k > 0) distance = std::max(distance, sorted[static_cast<std::size_t>(options.top_k) - 1] - own);
  if (options.min_p > 0) distance = std::max(distance, sorted.front() + std::log(options.min_p) - own);
  if (options.top_p < 1) {
    double all = 0, before = 0;
    for (const double logit : sorted) {
      all += std::exp(logit - sorted.front());
      if (logit > own) before += std::exp(logit - sorted.front());
    }
    distance = std::max(distance, before / all - options.top_p);
  }
  return distance;
}

/// How close the row came to choosing `other` instead of `chosen` for generated token `index`: the difference of
/// logits, or of shaped log-probability plus Gumbel noise. Of an id outside the support, its distance from the support.
[[nodiscard]] inline double deciding_gap(
    std::span<const float> logits, const SamplingOptions& options, int index, TokenId chosen, TokenId other) {
  if (options.greedy()) {
    return double{logits[static_cast<std::size_t>(chosen)]} - double{logits[static_cast<std::size_t>(other)]};
  }
  const Distribution p = shape(logits, options);
  for (const TokenId id : {chosen, other}) {
    if (p.probability(id) == 0) return distance_from_support(logits, options, id);
  }
  const KeyedNoise noise(options.seed.value());
  const auto score = [&](TokenId id) {
    return std::log(p.probability(id)) + noise.gumbel(static_cast<std::uint32_t>(index), Purpose::draw, id);
  };
  return score(chosen) - score(other);
}

/// The first index at which two runs differ; the shorter length when one begins the other; -1 when they are equal.
[[nodiscard]] inline int first_difference(std::span<const TokenId> a, std::span<const TokenId> b) {
  const auto [x, y] = std::ranges::mismatch(a, b);
  if (x == a.end() && y == b.end()) return -1;
  return static_cast<int>(x - a.begin());
}

}  // namespace foresay
