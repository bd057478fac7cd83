// decode/lossless/runs.h: runs of a model with and without drafts, and where they first differ.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "decode/generate.h"
#include "decode/lossless/lossless.h"

namespace foresay {

/// What checks share: the model, and what they were asked.
struct LosslessContext {
  const Model& model;
  Drafter* drafter;  ///< null where nothing can be drafted
  std::span<const LosslessPrompt> prompts;
  const LosslessOptions& options;
  std::vector<int> depths;  ///< that can be drafted, ascending; empty without a drafter

  [[nodiscard]] DecodeOptions decode_options(SamplingOptions sampling, int depth) const;
  /// Throws ErrorCode::cancelled when it was asked for.
  void look_for_cancel() const;
  [[noreturn]] void fail_target(const std::string& problem) const;
  [[nodiscard]] Generation run(const LosslessPrompt& prompt, const DecodeOptions& options, int chunk = 0) const;
  /// Without drafts, in one chunk: the truth. Throws ErrorCode::internal when it ends with Finish::error.
  [[nodiscard]] Generation run_plain(const LosslessPrompt& prompt, DecodeOptions options) const;
};

/// A check while it runs: compares answers, and remembers the first that must not differ.
class Comparison {
 public:
  Comparison(const LosslessContext& context, std::string name) : context_(context) { check_.name = std::move(name); }

  /// Does `other` say what `plain` says? `how` tells how it ran: "depth 3".
  ///   options  of the plain run; the seed must be given unless greedy
  void compare(const LosslessPrompt& prompt, const DecodeOptions& options, const Generation& plain,
      const Generation& other, const std::string& how);

  /// `done` says what was compared; a difference says itself.
  [[nodiscard]] LosslessCheck finish(int prompts, const std::string& done) &&;

 private:
  const LosslessContext& context_;
  LosslessCheck check_;
  int differing_ = 0, ties_ = 0;
};

LosslessCheck check_greedy(const LosslessContext& context);
LosslessCheck check_coupled(const LosslessContext& context);
LosslessCheck check_together(const LosslessContext& context);
LosslessCheck check_ratio(const LosslessContext& context);

}  // namespace foresay
