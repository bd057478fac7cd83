#include "decode/sequence.h"

#include <algorithm>
#include <random>

#include "base/error.h"

namespace foresay {
namespace {

std::uint64_t system_seed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

}  // namespace

Sequence::Sequence(
    const Model& model, std::vector<TokenId> prompt, DecodeOptions decode_options, std::unique_ptr<Chance> own_chance)
    : tokens(std::move(prompt)),
      prompt_length(static_cast<int>(tokens.size())),
      options(std::move(decode_options)),
      seed(options.sampling.seed ? *options.sampling.seed : system_seed()),
      chance(own_chance ? std::move(own_chance) : std::make_unique<KeyedChance>(KeyedNoise(seed))),
      context_(model.info().context) {
  validate(options.sampling);
  if (options.depth < 0 || options.depth > 8)
    fail(ErrorCode::usage, "--depth: expected 0 to 8, found {}", options.depth);
  if (options.max_tokens < 1) fail(ErrorCode::usage, "--max-tokens: expected 1 or more, found {}", options.max_tokens);
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

int Sequence::emit(std::span<const TokenId> candidates) {
  int emitted = 0;
  for (const TokenId id : candidates) {
    if (finish != Finish::running) break;
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
