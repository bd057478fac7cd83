// decode/prefill.h: filling a sequence's caches from its prompt.
#pragma once

#include <atomic>

#include "decode/sequence.h"

namespace foresay {

/// Runs the prompt through the trunk in chunks of `chunk` rows (<= 0: all at once), lets the drafter build its history,
/// and emits the first token. Results do not depend on the chunk. Between chunks `cancel` is looked at; null is never.
void prefill(
    const Model& model, Drafter* drafter, Sequence& sequence, int chunk, const std::atomic<bool>* cancel = nullptr);

}  // namespace foresay
