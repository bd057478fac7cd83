#include "foresay/sampling.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace foresay {
namespace {

void check_window(const char* option, int window) {
  if (window < 0)
    fail(ErrorCode::usage, "{}: expected a whole number >= 0 (0 is everything), found {}", option, window);
}

void check_penalty(const char* option, double penalty) {
  if (!(penalty >= -100 && penalty <= 100)) {
    fail(ErrorCode::usage, "{}: expected a number from -100 to 100, found {}", option, penalty);
  }
}

void check_ids(const char* option, const std::vector<TokenId>& ids) {
  for (const TokenId id : ids) {
    if (id < 0) fail(ErrorCode::usage, "{}: expected a token id >= 0, found {}", option, id);
  }
}

}  // namespace

void validate(const SamplingOptions& options) {
  // Each test is written so that NaN fails it.
  if (!(options.temperature >= 0 && std::isfinite(options.temperature))) {
    fail(ErrorCode::usage, "--temperature: expected a number >= 0, found {}", options.temperature);
  }
  if (options.top_k < 0) {
    fail(ErrorCode::usage, "--top-k: expected a whole number >= 0 (0 is off), found {}", options.top_k);
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    fail(ErrorCode::usage, "--top-p: expected a number in (0, 1], found {}", options.top_p);
  }
  if (!(options.min_p >= 0 && options.min_p < 1)) {
    fail(ErrorCode::usage, "--min-p: expected a number in [0, 1), found {}", options.min_p);
  }
  if (options.min_keep < 1) {
    fail(ErrorCode::usage, "--min-tokens-to-keep: expected a whole number >= 1, found {}", options.min_keep);
  }
  if (!(options.xtc_probability >= 0 && options.xtc_probability <= 1)) {
    fail(ErrorCode::usage, "--xtc-probability: expected a number in [0, 1], found {}", options.xtc_probability);
  }
  if (!(options.xtc_threshold >= 0 && options.xtc_threshold <= 0.5)) {
    fail(ErrorCode::usage, "--xtc-threshold: expected a number in [0, 0.5], found {}", options.xtc_threshold);
  }
  if (!(options.repetition_penalty > 0 && std::isfinite(options.repetition_penalty))) {
    fail(ErrorCode::usage, "--repetition-penalty: expected a number > 0 (1 is off), found {}",
        options.repetition_penalty);
  }
  check_penalty("--presence-penalty", options.presence_penalty);
  check_penalty("--frequency-penalty", options.frequency_penalty);
  check_window("--repetition-context-size", options.repetition_window);
  check_window("--presence-context-size", options.presence_window);
  check_window("--frequency-context-size", options.frequency_window);
  for (const auto& [id, bias] : options.logit_bias) {
    if (id < 0) fail(ErrorCode::usage, "--logit-bias: expected a token id >= 0, found {}", id);
    if (!std::isfinite(bias)) {
      fail(ErrorCode::usage, "--logit-bias: expected a finite number for id {}, found {}", id, bias);
    }
  }
  for (const std::vector<TokenId>& word : options.bad_words) {
    if (word.empty()) fail(ErrorCode::usage, "--bad-word: expected a token at least, found none");
    check_ids("--bad-word", word);
  }
  check_ids("the ids that xtc spares", options.xtc_exempt);
  if (!std::is_permutation(options.order.begin(), options.order.end(), kDefaultOrder.begin(), kDefaultOrder.end())) {
    fail(ErrorCode::usage,
        "--sampler-order: expected each of top_p, min_p, xtc, top_k, temperature once, found {} steps of which some "
        "are "
        "missing or twice",
        options.order.size());
  }
}

}  // namespace foresay
