// decode/chain_by_definition.h: the sampling chain written out filter by filter over whole rows, with no shortcut and
// apart from the product's own.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "decode/sample/distribution.h"
#include "foresay/sampling.h"

namespace foresay {

inline constexpr double kMaskedOut = -std::numeric_limits<double>::infinity();

/// Bias, penalties and bad words, for a row behind `history`.
inline void process_by_definition(
    std::vector<double>& logits, const std::vector<TokenId>& history, const SamplingOptions& options) {
  const auto newest = [&](int window) {
    const std::size_t count =
        window == 0 ? history.size() : std::min<std::size_t>(history.size(), static_cast<std::size_t>(window));
    return std::vector<TokenId>(history.end() - static_cast<std::ptrdiff_t>(count), history.end());
  };
  const auto distinct = [&](int window) {
    const auto ids = newest(window);
    return std::set<TokenId>(ids.begin(), ids.end());
  };
  const auto at = [&](TokenId id) -> double& { return logits[static_cast<std::size_t>(id)]; };
  for (const auto& [id, bias] : options.logit_bias) at(id) += bias;
  if (options.repetition_penalty != 1) {
    for (const TokenId id : distinct(options.repetition_window)) {
      at(id) = at(id) < 0 ? at(id) * options.repetition_penalty : at(id) / options.repetition_penalty;
    }
  }
  for (const TokenId id : distinct(options.presence_window)) at(id) -= options.presence_penalty;
  for (const TokenId id : newest(options.frequency_window)) at(id) -= options.frequency_penalty;
  for (const auto& word : options.bad_words) {
    const std::vector<TokenId> before(word.begin(), word.end() - 1);
    if (history.size() >= before.size() && std::equal(before.rbegin(), before.rend(), history.rbegin())) {
      at(word.back()) = kMaskedOut;
    }
  }
}

/// Filters and temperature, in the order of the options.
inline Distribution shape_by_definition(std::vector<double> logits, const SamplingOptions& options, bool xtc) {
  const auto n = std::min(logits.size(), static_cast<std::size_t>(options.vocab_limit));
  logits.resize(n);
  double temperature = 1;
  const auto weights = [&] {
    const double peak = *std::ranges::max_element(logits);
    std::vector<double> w(n);
    for (std::size_t i = 0; i < n; ++i) w[i] = std::exp((logits[i] - peak) / temperature);
    return w;
  };
  const auto descending = [&] {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
    return order;
  };
  for (const SamplingStep step : options.order) {
    const auto w = weights();
    const double total = std::accumulate(w.begin(), w.end(), 0.0);
    const auto order = descending();
    if (step == SamplingStep::top_p && options.top_p < 1) {
      double above = 0, threshold = 0;
      for (const std::size_t id : order) {
        if (above < options.top_p * total) threshold = logits[id];
        above += w[id];
      }
      for (double& x : logits) x = x < threshold ? kMaskedOut : x;
    } else if (step == SamplingStep::min_p && options.min_p > 0) {
      const double peak = *std::ranges::max_element(logits);
      for (std::size_t i = static_cast<std::size_t>(options.min_keep); i < n; ++i) {
        if ((logits[order[i]] - peak) / temperature < std::log(options.min_p)) logits[order[i]] = kMaskedOut;
      }
    } else if (step == SamplingStep::xtc && xtc) {
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < n; ++i) {
        if (w[i] / total > options.xtc_threshold) least = std::min(least, logits[i]);
      }
      for (std::size_t i = 0; i < n; ++i) {
        const bool exempt = std::ranges::count(options.xtc_exempt, static_cast<TokenId>(i)) > 0;
        if (logits[i] > least && !exempt) logits[i] = kMaskedOut;
      }
    } else if (step == SamplingStep::top_k && options.top_k > 0) {
      for (std::size_t i = static_cast<std::size_t>(options.top_k); i < n; ++i) logits[order[i]] = kMaskedOut;
    } else if (step == SamplingStep::temperature) {
      temperature = options.temperature;
    }
  }
  std::vector<TokenId> ids;
  std::vector<double> p;
  const auto w = weights();
  const double total = std::accumulate(w.begin(), w.end(), 0.0);
  for (std::size_t id = 0; id < n; ++id) {
    if (w[id] < std::numeric_limits<double>::min()) continue;  // support means positive, also after division
    ids.push_back(static_cast<TokenId>(id));
    p.push_back(w[id] / total);
  }
  return {std::move(ids), std::move(p)};
}

/// Both, as next_distribution() does it.
inline Distribution chain_by_definition(
    std::span<const float> row, const std::vector<TokenId>& history, const SamplingOptions& options, bool xtc) {
  std::vector<double> logits(row.begin(), row.end());
  process_by_definition(logits, history, options);
  return shape_by_definition(std::move(logits), options, xtc);
}

}  // namespace foresay
