// decode/sequence.h: everything that belongs to one sequence being decoded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/draft/drafter.h"
#include "decode/sample/chance.h"
#include "foresay/log_probabilities.h"
#include "foresay/sampling.h"
#include "foresay/stats.h"
#include "foresay/token.h"
#include "model/model.h"

namespace foresay {

struct DecodeOptions {
  SamplingOptions sampling;
  int depth = 3;                  ///< tokens drafted per round, 0 to 8; 0 is plain decoding
  int draft_vocabulary = -1;      ///< drafts come from so many low ids, special tokens and the context; 0: all ids; -1:
                                  ///< as it pays (draft/draw.h)
  int max_tokens = 256;           ///< >= 1
  int min_tokens = 0;             ///< stop ids are forbidden until so many were generated; 0 to max_tokens
  std::vector<TokenId> stop_ids;  ///< a generated stop id is the last one
  std::optional<int> top_logprobs = std::nullopt;  ///< log-probabilities wanted: of the token and of so many others
};

enum class Finish {
  running,
  stop,    ///< a stop id, or on_token said so
  length,  ///< max_tokens or the context was reached
  error,   ///< the target's logits were not finite; see Sequence::problem
  cancelled,
};

/// One round as it happened, for tests and debugging.
struct RoundTrace {
  int known = 0;  ///< tokens known when the round began; the last one was not in the caches yet
  std::vector<TokenId> draft;
  int accepted = 0;
};

/// Engine thread only. Between rounds the trunk's caches hold every token but the last: caches->length() ==
/// tokens.size() - 1.
struct Sequence {
  /// Throws ErrorCode::usage for an empty prompt, an id outside the vocabulary, a prompt that leaves no room in the
  /// context, or options out of range. `chance` replaces the keyed noise of options.sampling (tests).
  Sequence(
      const Model& model, std::vector<TokenId> prompt, DecodeOptions options, std::unique_ptr<Chance> chance = nullptr);

  std::vector<TokenId> tokens;  ///< prompt, then what was generated
  int prompt_length;
  DecodeOptions options;
  std::uint64_t seed;  ///< of the noise: the one given, or one drawn from the system
  std::unique_ptr<CacheSet> caches;
  std::unique_ptr<DraftState> draft_state;  ///< the drafter's; null without one
  std::unique_ptr<Chance> chance;
  /// One per generated token when options.top_logprobs is set, else empty; the last one is there when on_token runs.
  std::vector<TokenLogProbabilities> log_probabilities;
  Stats stats;
  Finish finish = Finish::running;
  std::string problem;  ///< with Finish::error

  std::function<bool(TokenId)> on_token;  ///< sees every emitted token in order; true stops after it
  std::function<void(const RoundTrace&)> on_round;

  [[nodiscard]] int generated() const { return static_cast<int>(tokens.size()) - prompt_length; }
  /// Tokens that may still be emitted, by max_tokens and by the context.
  [[nodiscard]] int remaining() const;
  /// Appends tokens in order until one ends the sequence; returns how many were appended.
  ///   logits  [candidates, V]  the target's rows they came from; read for log-probabilities only
  int emit(std::span<const TokenId> candidates, std::span<const float> logits = {});
  /// Takes over what another sequence with the same tokens has read, as if this one had read it itself.
  void fork_state(Sequence& from, Drafter* drafter);
  /// Ends the sequence with Finish::error and drops its state, which is not to be trusted any more.
  void fail_with(std::string why);

 private:
  int context_;
};

/// The purpose under which a sequence draws its drafts: the target's own noise when acceptance is coupled or greedy.
[[nodiscard]] Purpose draft_purpose(const SamplingOptions& sampling);

}  // namespace foresay
