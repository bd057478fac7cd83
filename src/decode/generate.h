// decode/generate.h: one prompt, decoded to its end.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
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
  std::vector<TokenId> ids;  ///< what was generated, a stop id included
  Finish finish = Finish::running;
  std::string problem;  ///< with Finish::error
  std::uint64_t seed = 0;
  Stats stats;
};

/// Decodes one prompt. `drafter` null is plain decoding. Throws as Sequence's constructor does; a target that is not
/// finite is no exception but Finish::error.
[[nodiscard]] Generation generate(const Model& model, Drafter* drafter, const GenerateRequest& request);

}  // namespace foresay
