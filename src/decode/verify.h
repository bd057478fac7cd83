// decode/verify.h: scoring draft blocks in one target pass, and deciding what survives.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "decode/accept.h"
#include "decode/sequence.h"

namespace foresay {

/// The target's pass over [pending token, d1 .. dk] of every sequence: rows of all of them in one call, each with its
/// own depth.
struct Verification {
  std::vector<int> first_row;  ///< [sequences] where each sequence's k+1 rows begin
  Forward forward;
};
[[nodiscard]] Verification verify(
    const Model& model, std::span<Sequence* const> sequences, std::span<const DraftBlock> blocks);

/// Which drafts of a block survive and what follows, by the sequence's own sampling and acceptance.
///   logits  [k+1, V]  the target's rows
/// A row that decides something and from which no token can be drawn ends the sequence with Finish::error, drops its
/// state and gives nothing. Rows behind the first rejection are not looked at: plain decoding never sees them.
[[nodiscard]] std::optional<Verdict> decide(Sequence& sequence, const DraftBlock& block, std::span<const float> logits);

}  // namespace foresay
