#include "decode/lossless/tie.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "decode/evaluate.h"
#include "decode/next_token.h"

namespace foresay {
namespace {

/// The target's logits for the id behind prompt and `before`.
std::vector<float> last_row(const Model& model, const std::vector<TokenId>& prompt, std::span<const TokenId> before) {
  std::vector<TokenId> ids = prompt;
  ids.insert(ids.end(), before.begin(), before.end());
  const Evaluation rows = evaluate(model, ids, /*depth=*/0);
  return {rows.logits.end() - rows.vocab, rows.logits.end()};
}

Distribution distribution(const Model& model, const std::vector<TokenId>& prompt, const DecodeOptions& options,
    std::span<const TokenId> before, std::span<const float> logits) {
  Sequence sequence(model, prompt, options);
  std::string problem;
  auto result = next_distribution(sequence, before, logits, problem);
  if (!result) fail(ErrorCode::internal, "[lossless] {}", problem);
  return result->listed();
}

/// Filters moved so far that an id whose place a difference of `tolerance` decides is kept.
SamplingOptions relaxed(SamplingOptions sampling, double tolerance) {
  sampling.top_p = std::min(1.0, sampling.top_p + tolerance);
  sampling.min_p *= std::exp(-tolerance);
  if (sampling.top_k > 0) ++sampling.top_k;
  sampling.xtc_threshold = std::min(0.5, sampling.xtc_threshold + tolerance);
  return sampling;
}

}  // namespace

Distribution plain_distribution(const Model& model, const std::vector<TokenId>& prompt, const DecodeOptions& options,
    std::span<const TokenId> before) {
  return distribution(model, prompt, options, before, last_row(model, prompt, before));
}

double deciding_margin(const Model& model, const std::vector<TokenId>& prompt, const DecodeOptions& options,
    std::span<const TokenId> before, TokenId a, TokenId b, double tolerance) {
  const std::vector<float> logits = last_row(model, prompt, before);
  DecodeOptions asked = options;
  const auto log_p = [](const Distribution& d, TokenId id) { return std::log(d.probability(id)); };
  if (options.sampling.greedy()) {
    // The softmax of the processed row, without filters, has the differences of its logits.
    asked.sampling.temperature = 1;
    asked.sampling.top_k = 0;
    asked.sampling.top_p = 1;
    asked.sampling.min_p = asked.sampling.xtc_probability = 0;
    const Distribution d = distribution(model, prompt, asked, before, logits);
    return std::abs(log_p(d, a) - log_p(d, b));
  }
  Distribution d = distribution(model, prompt, asked, before, logits);
  if (d.probability(a) == 0 || d.probability(b) == 0) {
    asked.sampling = relaxed(options.sampling, tolerance);
    const Distribution wider = distribution(model, prompt, asked, before, logits);
    double margin = 0;
    for (const TokenId id : {a, b}) {
      if (d.probability(id) > 0) continue;
      double least = 1;  // of those that top-k kept: the border that the id would have to cross
      for (const TokenId kept : d.ids()) least = std::min(least, wider.probability(kept));
      const bool ranked = options.sampling.top_k > 0;
      margin = std::max(margin, ranked ? std::log(least) - log_p(wider, id) : 0.0);
      if (wider.probability(id) == 0) margin = std::numeric_limits<double>::infinity();
    }
    return margin;
  }
  const KeyedNoise noise(options.sampling.seed.value(), options.sampling.choice);
  const auto index = static_cast<std::uint32_t>(before.size());
  const auto score = [&](TokenId id) { return log_p(d, id) + noise.gumbel(index, Purpose::draw, id); };
  return std::abs(score(a) - score(b));
}

bool part_at_a_tie(const Model& model, const std::vector<TokenId>& prompt, const DecodeOptions& options,
    std::span<const TokenId> plain, std::span<const TokenId> other, double tolerance) {
  const auto [a, b] = std::ranges::mismatch(plain, other);
  if (tolerance == 0 || a == plain.end() || b == other.end()) return false;
  const auto before = plain.first(static_cast<std::size_t>(a - plain.begin()));
  return deciding_margin(model, prompt, options, before, *a, *b, tolerance) <= tolerance;
}

}  // namespace foresay
