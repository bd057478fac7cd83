#include "decode/generate.h"

#include <algorithm>
#include <chrono>

#include "decode/prefill.h"
#include "decode/round.h"

namespace foresay {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Generation generate(const Model& model, Drafter* drafter, const GenerateRequest& request) {
  Sequence sequence(model, request.prompt, request.options);
  sequence.on_token = request.on_token;
  sequence.stats.depth = drafter != nullptr ? std::min(request.options.depth, drafter->max_depth()) : 0;

  const auto prompt_start = std::chrono::steady_clock::now();
  prefill(model, drafter, sequence, request.prefill_chunk, request.cancel);
  sequence.stats.prompt_seconds = seconds_since(prompt_start);

  const auto decode_start = std::chrono::steady_clock::now();
  Sequence* const one[] = {&sequence};
  while (sequence.finish == Finish::running) {
    if (request.cancel != nullptr && *request.cancel) {
      sequence.finish = Finish::cancelled;
      break;
    }
    round(model, drafter, one);
  }
  sequence.stats.decode_seconds = seconds_since(decode_start);
  sequence.stats.drafted.resize(static_cast<std::size_t>(sequence.stats.depth));
  sequence.stats.accepted.resize(static_cast<std::size_t>(sequence.stats.depth));

  return {{sequence.tokens.begin() + sequence.prompt_length, sequence.tokens.end()}, sequence.finish,
      std::move(sequence.problem), sequence.seed, std::move(sequence.stats)};
}

}  // namespace foresay
