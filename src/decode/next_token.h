// decode/next_token.h: what a sequence draws its next token from, given a row of logits.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "decode/sample/distribution.h"
#include "decode/sample/row.h"
#include "decode/sequence.h"

namespace foresay {

/// The one chain that target rows and head rows both pass through: bias, penalties and forbidden tokens by the row's
/// own history, then filters and temperature. The same row gives the same distribution whoever asks.
///   drafted  tokens of the block ahead of the row; its generated index is generated() + drafted.size()
///   row      [V], or of a drafter's part of the vocabulary; not changed; without filters and processors the
///   distribution looks at it as long as it lives
/// Nothing when no token can be drawn from the row; `problem` then says why.
[[nodiscard]] std::optional<Distribution> next_distribution(
    Sequence& sequence, std::span<const TokenId> drafted, LogitRow row, std::string& problem);

}  // namespace foresay
