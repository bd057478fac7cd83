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

/// Whether two different answers to one request part where their deciding scores are closer than `tolerance`; behind
/// that nothing is compared. Never where one ends while the other goes on, nor with a tolerance of 0.
[[nodiscard]] bool part_at_a_tie(const Model& model, const std::vector<TokenId>& prompt, const DecodeOptions& options,
    std::span<const TokenId> plain, std::span<const TokenId> other, double tolerance);

/// The target's own distribution behind prompt and `before`, from a pass without drafts.
[[nodiscard]] Distribution plain_distribution(const Model& model, const std::vector<TokenId>& prompt,
    const DecodeOptions& options, std::span<const TokenId> before);

}  // namespace foresay
