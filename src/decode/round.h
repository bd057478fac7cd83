// decode/round.h: one round of the loop: draft, verify, accept, emit, commit (docs/architecture.md).
#pragma once

#include <span>

#include "decode/sequence.h"

namespace foresay {

/// How many tokens to draft for a sequence now: what was asked for, capped by the drafter, and never more than can
/// still be emitted before the last token, so that no row is verified past max_tokens or the context.
[[nodiscard]] int round_depth(const Sequence& sequence, const Drafter* drafter);

/// One round for every sequence that is still running; all must have been prefilled. Their rows share one target pass,
/// each with its own depth, acceptance and commit; on the CPU lane each gets the very bits of a run alone. A null
/// drafter is plain decoding.
void round(const Model& model, Drafter* drafter, std::span<Sequence* const> sequences);

}  // namespace foresay
