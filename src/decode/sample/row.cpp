#include "decode/sample/row.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/error.h"

namespace foresay {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The highest logit, -inf in an empty span; sets `bad` where a logit is NaN or +inf.
float highest(std::span<const float> logits, bool& bad) {
  // Independent lanes, so that the compiler can use vectors: a single running maximum is a chain it must not reorder.
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> best;
  std::array<int, kLanes> finite;
  best.fill(-kInfinity);
  finite.fill(1);
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float logit = logits[i + lane];
      best[lane] = logit > best[lane] ? logit : best[lane];
      finite[lane] &= logit < kInfinity ? 1 : 0;
    }
  }
  for (std::size_t lane = 0; i < logits.size(); ++i, ++lane) {
    best[lane] = std::max(best[lane], logits[i]);
    finite[lane] &= logits[i] < kInfinity ? 1 : 0;
  }
  bad = bad || std::ranges::find(finite, 0) != finite.end();
  return std::ranges::max(best);
}

/// The highest logit that can be emitted, and what is wrong with the row, if anything.
float survey(std::span<const float> logits, TokenId vocab_limit, std::string& problem) {
  const auto row = emittable(logits, vocab_limit);
  bool bad = false;
  const float best = highest(row, bad);
  (void)highest(logits.subspan(row.size()), bad);
  if (bad) {
    const auto first = std::ranges::find_if_not(logits, [](float logit) { return logit < kInfinity; });
    problem = fmt::format("the logit of id {} is {}, not a finite number", first - logits.begin(), *first);
  } else if (best == -kInfinity) {
    problem = fmt::format("no token can be emitted: all {} logits from id 0 are -inf", row.size());
  }
  return best;
}

}  // namespace

std::span<const float> emittable(std::span<const float> logits, TokenId vocab_limit) {
  return logits.first(std::min(logits.size(), static_cast<std::size_t>(std::max(vocab_limit, 0))));
}

std::string row_problem(std::span<const float> logits, TokenId vocab_limit) {
  std::string problem;
  (void)survey(logits, vocab_limit, problem);
  return problem;
}

Peak find_peak(std::span<const float> logits, TokenId vocab_limit) {
  std::string problem;
  const float best = survey(logits, vocab_limit, problem);
  if (!problem.empty()) fail(ErrorCode::internal, "[sample] {}", problem);
  return {best, static_cast<TokenId>(std::ranges::find(logits, best) - logits.begin())};
}

}  // namespace foresay
