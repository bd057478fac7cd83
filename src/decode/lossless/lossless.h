// decode/lossless/lossless.h: does drafting change what this model says? The promises of docs/numerics.md, checked on a
// given model.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "decode/draft/drafter.h"
#include "foresay/token.h"
#include "model/model.h"

namespace foresay {

struct LosslessPrompt {
  std::string name;  ///< for messages
  std::vector<TokenId> ids;
};

struct LosslessOptions {
  std::vector<int> depths = {1, 2, 3, 5, 8};  ///< each at least 1; capped by what the drafter can do
  int max_tokens = 32;                        ///< of each answer
  int odd_chunk = 7;                          ///< rows per prompt pass where chunks are checked
  int samplers = 8;                           ///< of the coupled check, at most all it knows
  int seeds = 2;                              ///< for each of them
  int ratio_prompts = 2;
  int ratio_rounds = 600;  ///< from each of those prompts, for each of two samplers

  std::vector<TokenId> stop_ids = {};
  TokenId vocab_limit = std::numeric_limits<TokenId>::max();

  /// Scores that are closer than this may decide either way: on a lane whose bits depend on the rows that share a pass
  /// ids may first differ there, and a run is compared no further. 0 where rows have bits of their own.
  double tie_tolerance = 0;

  const std::atomic<bool>* cancel = nullptr;  ///< looked at between passes; the checks then end with Error cancelled
  /// Called when plain decoding itself fails (the target's logits are not finite), to throw something better than
  /// ErrorCode::internal.
  std::function<void(const std::string& problem)> on_target_problem = {};
};

struct LosslessCheck {
  std::string name;  ///< greedy, coupled, together, ratio
  bool passed = true;
  int prompts = 0;
  long tokens = 0;                  ///< that were compared
  long accepted = 0, rejected = 0;  ///< drafts, while it ran; without either kind it shows little
  std::string detail;               ///< what was done, or the first thing that went wrong
};

/// Runs the checks in order; `on_check` sees each as it ends.
///   greedy    ids at every depth, and with prompts read in odd chunks, equal plain decoding's
///   coupled   the same for samplers with a seed
///   together  several sequences of different depths in one batch get what they get alone
///   ratio     tokens of real rounds have the target's own distribution (chi-square, 1e-6)
/// A null drafter, and one that can draft nothing, leaves what does not need drafts: chunks and batches.
/// Throws ErrorCode::usage for prompts that cannot be decoded, ErrorCode::cancelled, ErrorCode::internal when plain
/// decoding itself fails.
[[nodiscard]] std::vector<LosslessCheck> check_lossless(const Model& model, Drafter* drafter,
    std::span<const LosslessPrompt> prompts, const LosslessOptions& options,
    const std::function<void(const LosslessCheck&)>& on_check = {});

[[nodiscard]] bool is_lossless(std::span<const LosslessCheck> checks);

}  // namespace foresay
