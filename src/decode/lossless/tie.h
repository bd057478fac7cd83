// decode/lossless/tie.h: how close a row came to choosing another id.
#pragma once

#include <span>

#include "decode/sequence.h"

namespace foresay {

/// What separates two ids at a row of plain decoding.
///   prompt, options  of the run
///   before           the ids generated ahead of the row
///   tolerance        how far filters may be moved to find an id that they drop
/// Greedy: the difference of their logits after bias and penalties. With a seed: of their log-probabilities plus noise.
/// Infinite where an id could not have been chosen. Runs the model over prompt and ids.
[[nodiscard]] double deciding_margin(const Model& model, const std::vector<TokenId>& prompt,
    const DecodeOptions& options, std::span<const TokenId> before, TokenId a, TokenId b, double tolerance);

/// The target's own distribution behind prompt and `before`, from a pass without drafts.
[[nodiscard]] Distribution plain_distribution(const Model& model, const std::vector<TokenId>& prompt,
    const DecodeOptions& options, std::span<const TokenId> before);

}  // namespace foresay
