#include "decode/sample/processors.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace foresay {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

/// A token of the history and how often it is there.
struct Seen {
  TokenId id;
  int times;
};

/// Distinct ids of the newest `window` tokens (0: all), ascending.
std::vector<Seen> count_seen(const History& history, int window) {
  const std::size_t size = history.size();
  const std::size_t first =
      window > 0 && static_cast<std::size_t>(window) < size ? size - static_cast<std::size_t>(window) : 0;
  std::vector<TokenId> ids;
  ids.reserve(size - first);
  for (std::size_t i = first; i < size; ++i) ids.push_back(history[i]);
  std::ranges::sort(ids);
  std::vector<Seen> seen;
  for (const TokenId id : ids) {
    if (!seen.empty() && seen.back().id == id) {
      ++seen.back().times;
    } else {
      seen.push_back({id, 1});
    }
  }
  return seen;
}

/// The history ends with all of the word but its last token.
bool would_complete(const History& history, const std::vector<TokenId>& word) {
  const std::size_t before = word.size() - 1;
  if (history.size() < before) return false;
  for (std::size_t i = 0; i < before; ++i) {
    if (history[history.size() - before + i] != word[i]) return false;
  }
  return true;
}

}  // namespace

bool has_processors(const SamplingOptions& options, std::span<const TokenId> forbidden) {
  return !options.logit_bias.empty() || options.repetition_penalty != 1 || options.presence_penalty != 0 ||
         options.frequency_penalty != 0 || !options.bad_words.empty() || !forbidden.empty();
}

void process(std::span<float> logits, const History& history, const SamplingOptions& options,
    std::span<const TokenId> forbidden, const VocabularySubset* vocabulary) {
  // Where the row has an id, changes its logit.
  const auto change = [&](TokenId id, auto to) {
    const auto column = vocabulary != nullptr ? vocabulary->column(id) : std::optional(static_cast<std::size_t>(id));
    if (column && *column < logits.size()) logits[*column] = to(logits[*column]);
  };
  const auto mask = [&](TokenId id) { change(id, [](float) { return kMasked; }); };
  for (const auto& [id, bias] : options.logit_bias) {
    change(id, [added = bias](float x) { return x + added; });
  }
  if (options.repetition_penalty != 1) {
    const auto penalty = static_cast<float>(options.repetition_penalty);
    for (const Seen& seen : count_seen(history, options.repetition_window)) {
      change(seen.id, [&](float x) { return x < 0 ? x * penalty : x / penalty; });
    }
  }
  if (options.presence_penalty != 0) {
    const auto penalty = static_cast<float>(options.presence_penalty);
    for (const Seen& seen : count_seen(history, options.presence_window)) {
      change(seen.id, [&](float x) { return x - penalty; });
    }
  }
  if (options.frequency_penalty != 0) {
    const auto penalty = static_cast<float>(options.frequency_penalty);
    for (const Seen& seen : count_seen(history, options.frequency_window)) {
      change(seen.id, [&](float x) { return x - penalty * static_cast<float>(seen.times); });
    }
  }
  for (const std::vector<TokenId>& word : options.bad_words) {
    if (would_complete(history, word)) mask(word.back());
  }
  for (const TokenId id : forbidden) mask(id);
}

}  // namespace foresay
