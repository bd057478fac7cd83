#include "decode/sample/processors.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace foresay {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

/// A token of the history and how often it is there.
struct Seen {
  TokenId id;
  int times;
};

/// Distinct ids of the newest `window` tokens (0: all) that the row has, ascending.
std::vector<Seen> count_seen(const History& history, int window, std::size_t vocab) {
  const std::size_t size = history.size();
  const std::size_t first =
      window > 0 && static_cast<std::size_t>(window) < size ? size - static_cast<std::size_t>(window) : 0;
  std::vector<TokenId> ids;
  ids.reserve(size - first);
  for (std::size_t i = first; i < size; ++i) {
    if (static_cast<std::size_t>(history[i]) < vocab) ids.push_back(history[i]);
  }
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

void mask(std::span<float> logits, TokenId id) {
  if (static_cast<std::size_t>(id) < logits.size()) logits[static_cast<std::size_t>(id)] = kMasked;
}

}  // namespace

bool has_processors(const SamplingOptions& options, std::span<const TokenId> forbidden) {
  return !options.logit_bias.empty() || options.repetition_penalty != 1 || options.presence_penalty != 0 ||
         options.frequency_penalty != 0 || !options.bad_words.empty() || !forbidden.empty();
}

void process(std::span<float> logits, const History& history, const SamplingOptions& options,
    std::span<const TokenId> forbidden) {
  const auto at = [&](TokenId id) -> float& { return logits[static_cast<std::size_t>(id)]; };
  for (const auto& [id, bias] : options.logit_bias) {
    if (static_cast<std::size_t>(id) < logits.size()) at(id) += bias;
  }
  if (options.repetition_penalty != 1) {
    const auto penalty = static_cast<float>(options.repetition_penalty);
    for (const Seen& seen : count_seen(history, options.repetition_window, logits.size())) {
      at(seen.id) = at(seen.id) < 0 ? at(seen.id) * penalty : at(seen.id) / penalty;
    }
  }
  if (options.presence_penalty != 0) {
    const auto penalty = static_cast<float>(options.presence_penalty);
    for (const Seen& seen : count_seen(history, options.presence_window, logits.size())) at(seen.id) -= penalty;
  }
  if (options.frequency_penalty != 0) {
    const auto penalty = static_cast<float>(options.frequency_penalty);
    for (const Seen& seen : count_seen(history, options.frequency_window, logits.size())) {
      at(seen.id) -= penalty * static_cast<float>(seen.times);
    }
  }
  for (const std::vector<TokenId>& word : options.bad_words) {
    if (would_complete(history, word)) mask(logits, word.back());
  }
  for (const TokenId id : forbidden) mask(logits, id);
}

}  // namespace foresay
