// decode/generate.h: one prompt, decoded to its end; one answer or several.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "decode/sequence.h"

namespace foresay {

struct GenerateRequest {
  std::vector<TokenId> prompt;
  DecodeOptions options;
  int prefill_chunk = 512;                    ///< rows per prompt pass; <= 0: all at once
  std::function<bool(TokenId)> on_token;      ///< every emitted token in order; true stops after it
  const std::atomic<bool>* cancel = nullptr;  ///< looked at between passes
};

struct Generation {
  std::vector<TokenId> ids;                              ///< what was generated, a stop id included
  std::vector<TokenLogProbabilities> log_probabilities;  ///< one per id where they were asked for, else empty
  Finish finish = Finish::running;
  std::string problem;  ///< with Finish::error
  std::uint64_t seed = 0;
  Stats stats;
};

/// Decodes one prompt. `drafter` null is plain decoding. Throws as Sequence's constructor does; a target that is not
/// finite is no exception but Finish::error.
[[nodiscard]] Generation generate(const Model& model, Drafter* drafter, const GenerateRequest& request);

/// `n` answers to one prompt, which is read once. Answer c is what generate() gives with sampling.choice + c.
///   on_token  sees every emitted token with its answer's number, 0-based; true ends that answer. request.on_token is
///             not used.
[[nodiscard]] std::vector<Generation> generate_choices(const Model& model, Drafter* drafter,
    const GenerateRequest& request, int n, const std::function<bool(int choice, TokenId)>& on_token = {});

}  // namespace foresay
