// decode/prefill.h: filling caches from a prompt.
#pragma once

#include <atomic>
#include <span>

#include "decode/sequence.h"

namespace foresay {

/// Runs the next `chunk` rows (<= 0: all that are left) of the prompt through the trunk and lets the drafter build its
/// history. With the last of them every sequence gets its first token. All sequences have the same prompt; it is read
/// once, by the first of them, and the others take over what it read. Results do not depend on the chunk.
/// Returns whether the prompt has been read.
bool prefill_chunk(const Model& model, Drafter* drafter, std::span<Sequence* const> sequences, int chunk);

/// The whole prompt of one sequence. Between chunks `cancel` is looked at; null is never.
void prefill(
    const Model& model, Drafter* drafter, Sequence& sequence, int chunk, const std::atomic<bool>* cancel = nullptr);

}  // namespace foresay
