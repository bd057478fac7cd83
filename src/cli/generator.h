// cli/generator.h: one prompt of `generate`, ready to be decoded at any depth.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/open_model.h"
#include "cli/sampling_options.h"
#include "decode/generate.h"
#include "library/text_model.h"

namespace foresay::cli {

struct GenerateOptions {
  ModelOptions model;
  std::optional<std::string> prompt, prompt_ids;
  std::string system;
  bool chat = false, ignore_eos = false, compare = false, json = false;
  SamplingArguments sampling;
  std::vector<std::string> stop;
  DecodeOptions decode;  ///< but for its sampling
  int chunk = 512, choices = 1;
};

/// One of the answers to the prompt, with the text it gave.
struct Answer {
  Generation generation;
  std::string text;
};

class Generator {
 public:
  /// Reads and encodes the prompt. `options` and `open` must outlive this.
  Generator(const GenerateOptions& options, const OpenModel& open);

  [[nodiscard]] bool shows_text() const { return options_.prompt.has_value(); }
  [[nodiscard]] const std::vector<TokenId>& prompt() const { return request_.prompt; }
  [[nodiscard]] const TextModel& text() const { return text_; }

  /// Decodes every answer; `show`, where given, receives text as it comes, or the ids when the prompt was given as ids.
  /// Of several answers the first is shown as it comes, the others behind it, each under a line with its number. Logits
  /// that are not finite throw: ErrorCode::checkpoint naming the damaged tensor where there is one.
  std::vector<Answer> run(int depth, const std::function<void(std::string_view)>& show);

  /// A few tokens behind the prompt's beginning, for nothing but having the weights in memory before a measurement.
  void warm_up(int depth) const;

  /// Without the head only noise drawn afresh can differ, so a comparison pins the seed.
  void pin_seed(std::uint64_t seed);

  /// Must the ids equal those of plain decoding? Not under ratio acceptance: it keeps the distribution, not the draw.
  [[nodiscard]] bool must_be_identical() const;

  /// On a lane whose bits depend on the rows of a pass: answers that differ do so only behind a tie (docs/numerics.md).
  [[nodiscard]] bool part_at_ties(const std::vector<Answer>& plain, const std::vector<Answer>& drafted) const;

  /// Acceptance that shares its noise: the seed tells the whole answer.
  [[nodiscard]] bool is_coupled() const;

 private:
  [[nodiscard]] Drafter* drafter_for(int depth) const { return depth > 0 ? text_.drafter() : nullptr; }

  const GenerateOptions& options_;
  TextModel text_;
  GenerateRequest request_;
};

}  // namespace foresay::cli
