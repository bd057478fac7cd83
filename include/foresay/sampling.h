// foresay/sampling.h: what a request asks of the sampler.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "foresay/export.h"
#include "foresay/token.h"

namespace foresay {

/// How drafts are checked under sampling (docs/numerics.md).
enum class Acceptance {
  ratio,    ///< min(1, p/q) and residual: exact in distribution
  coupled,  ///< draft and target share their noise: the very ids of plain decoding with the same seed
};

/// A step of the chain whose place a request may choose.
enum class SamplingStep { top_p, min_p, xtc, top_k, temperature };

/// mlx-lm's order: filters on the distribution at temperature 1, temperature last.
inline constexpr std::array<SamplingStep, 5> kDefaultOrder = {
    SamplingStep::top_p, SamplingStep::min_p, SamplingStep::xtc, SamplingStep::top_k, SamplingStep::temperature};

/// What happens to a row of logits, in order: logit bias, repetition, presence and frequency penalty, bad words, then
/// the steps of `order`. Penalties look at the tokens before the row: the prompt, what was generated, and for a drafted
/// row the drafts ahead of it. Target and drafter pass through the same chain.
struct SamplingOptions {
  double temperature = 0.0;  ///< 0 is greedy: the most likely id after bias, penalties and bad words
  int top_k = 0;             ///< 0 is off
  double top_p = 1.0;        ///< in (0, 1]; 1 is off
  double min_p = 0.0;        ///< in [0, 1); 0 is off
  int min_keep = 1;          ///< ids that min-p never drops, the most likely ones

  double xtc_probability = 0.0;  ///< in [0, 1]: how often all but the least likely of the likely ids are dropped
  double xtc_threshold = 0.1;    ///< in [0, 0.5]: from which probability on an id is likely
  std::vector<TokenId> xtc_exempt = {};  ///< ids that xtc never drops: line ends, end-of-turn tokens

  double repetition_penalty = 1.0;  ///< > 0; 1 is off: divides positive logits of
                                    ///< seen ids, multiplies negative ones
  double presence_penalty = 0.0;    ///< subtracted once from a seen id
  double frequency_penalty = 0.0;   ///< subtracted for every time an id was seen
  int repetition_window = 20, presence_window = 20, frequency_window = 20;  ///< newest tokens looked at; 0 is all

  std::map<TokenId, float> logit_bias = {};          ///< added to the logits of these ids
  std::vector<std::vector<TokenId>> bad_words = {};  ///< token sequences that are never completed

  std::vector<SamplingStep> order = {kDefaultOrder.begin(), kDefaultOrder.end()};  ///< each step once

  std::optional<std::uint64_t> seed = std::nullopt;
  std::uint32_t choice = 0;                             ///< which of several answers to one prompt; keys the noise
  std::optional<Acceptance> acceptance = std::nullopt;  ///< empty: coupled with a seed, ratio without

  /// Ids at or above are never emitted: rows of padding behind the tokenizer's vocabulary.
  TokenId vocab_limit = std::numeric_limits<TokenId>::max();

  [[nodiscard]] bool greedy() const { return temperature == 0.0; }
  [[nodiscard]] Acceptance effective_acceptance() const {
    return acceptance.value_or(seed ? Acceptance::coupled : Acceptance::ratio);
  }
};

/// Throws ErrorCode::usage naming the first option that is out of range, contradictory or not a number.
FORESAY_API void validate(const SamplingOptions& options);

}  // namespace foresay
