#include "decode/sequence.h"

#include <algorithm>

#include "base/error.h"
#include "base/system_seed.h"
#include "decode/sample/log_probabilities.h"

namespace foresay {
namespace {

/// What validate() cannot know: the vocabulary.
void check_bias(const SamplingOptions& sampling, int vocab) {
  if (sampling.logit_bias.empty()) return;
  const TokenId highest = sampling.logit_bias.rbegin()->first;
  if (highest >= vocab) {
    fail(ErrorCode::usage, "--logit-bias: id {} is outside the vocabulary; expected 0 to {}", highest, vocab - 1);
  }
}

}  // namespace

Sequence::Sequence(
    const Model& model, std::vector<TokenId> prompt, DecodeOptions decode_options, std::unique_ptr<Chance> own_chance)
    : tokens(std::move(prompt)),
      prompt_length(static_cast<int>(tokens.size())),
      options(std::move(decode_options)),
      seed(options.sampling.seed ? *options.sampling.seed : system_seed()),
      chance(own_chance ? std::move(own_chance)
                        : std::make_unique<KeyedChance>(KeyedNoise(seed, options.sampling.choice))),
      context_(model.info().context) {
  validate(options.sampling);
  if (options.depth < 0 || options.depth > 8)
    fail(ErrorCode::usage, "--depth: expected 0 to 8, found {}", options.depth);
  if (options.draft_vocabulary < -1) {
    fail(ErrorCode::usage, "--draft-vocab: expected a number of ids >= 1, 0 (all) or -1 (as it pays), found {}",
        options.draft_vocabulary);
  }
  if (options.max_tokens < 1) fail(ErrorCode::usage, "--max-tokens: expected 1 or more, found {}", options.max_tokens);
  if (options.min_tokens < 0 || options.min_tokens > options.max_tokens) {
    fail(ErrorCode::usage, "--min-tokens: expected 0 to {} (the most tokens), found {}", options.max_tokens,
        options.min_tokens);
  }
  if (options.top_logprobs && *options.top_logprobs < 0) {
    fail(ErrorCode::usage, "--logprobs: expected a whole number >= 0, found {}", *options.top_logprobs);
  }
  check_bias(options.sampling, model.info().vocab);
  if (prompt_length == 0) fail(ErrorCode::usage, "the prompt is empty; expected at least one token");
  for (const TokenId id : tokens) {
    if (id < 0 || id >= model.info().vocab) {
      fail(ErrorCode::usage, "prompt id {} is outside the vocabulary; expected 0 to {}", id, model.info().vocab - 1);
    }
  }
  if (prompt_length >= context_) {
    fail(ErrorCode::usage,
        "the prompt has {} tokens, but the context of this checkpoint is {} and the answer needs one at least; shorten "
        "the prompt",
        prompt_length, context_);
  }
  caches = model.make_caches();
}

int Sequence::remaining() const {
  return std::min(options.max_tokens - generated(), context_ - static_cast<int>(tokens.size()));
}

int Sequence::emit(std::span<const TokenId> candidates, std::span<const float> logits) {
  const std::size_t vocab = candidates.empty() ? 0 : logits.size() / candidates.size();
  int emitted = 0;
  for (const TokenId id : candidates) {
    if (finish != Finish::running) break;
    if (options.top_logprobs) {
      const auto row = logits.subspan(static_cast<std::size_t>(emitted) * vocab, vocab);
      log_probabilities.push_back(
          foresay::log_probabilities(row, id, *options.top_logprobs, options.sampling.vocab_limit));
    }
    tokens.push_back(id);
    ++emitted;
    ++stats.generated;
    const bool stop_id = std::find(options.stop_ids.begin(), options.stop_ids.end(), id) != options.stop_ids.end();
    const bool stopped = on_token && on_token(id);
    if (stop_id || stopped) {
      finish = Finish::stop;
    } else if (remaining() <= 0) {
      finish = Finish::length;
    }
  }
  return emitted;
}

void Sequence::fork_state(Sequence& from, Drafter* drafter) {
  caches->restore(from.caches->snapshot());
  if (options.depth > 0 && drafter != nullptr && from.draft_state) draft_state = drafter->fork(*from.draft_state);
}

void Sequence::fail_with(std::string why) {
  finish = Finish::error;
  problem = std::move(why);
  caches.reset();
  draft_state.reset();
}

Purpose draft_purpose(const SamplingOptions& sampling) {
  return sampling.greedy() || sampling.effective_acceptance() == Acceptance::coupled ? Purpose::draw : Purpose::draft;
}

}  // namespace foresay
