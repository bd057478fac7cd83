// library/text_model.h: an opened model that reads and writes text: tokenizer, chat template, ends of turns.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decode/draft/drafter.h"
#include "library/open_model.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace foresay {

/// What decoding text needs beside the model. A folder without tokenizer.json still decodes ids.
class TextModel {
 public:
  /// A tokenizer that is there but damaged is a warning in `report`; text() then throws its error. `open` must outlive
  /// this.
  TextModel(const OpenModel& open, Report& report);

  [[nodiscard]] const OpenModel& open() const { return open_; }
  [[nodiscard]] const Model& model() const { return open_.model(); }

  [[nodiscard]] bool has_tokenizer() const { return tokenizer_.has_value(); }
  /// Throws ErrorCode::checkpoint where the folder has no tokenizer.json that can be read.
  [[nodiscard]] const Tokenizer& tokenizer() const;
  /// Largest id that text can hold + 1; rows behind are padding. The model's vocabulary where there is no tokenizer.
  [[nodiscard]] TokenId vocab_limit() const;

  /// Every id that ends a turn, ascending: the config files' union, and the family's own markers where the vocabulary
  /// has them.
  [[nodiscard]] const std::vector<TokenId>& stop_ids() const { return stop_ids_; }

  /// The prompt that the checkpoint's template makes of `messages` ([{role, content}, ...]), ready for an answer.
  ///   variables  further ones of the template: tools, enable_thinking, ...
  /// Throws ErrorCode::checkpoint without a template, ErrorCode::usage when the template refuses the messages.
  [[nodiscard]] std::string chat_prompt(const nlohmann::ordered_json& messages,
      nlohmann::ordered_json variables = nlohmann::ordered_json::object()) const;

  /// The model's own head as a drafter; null without one.
  [[nodiscard]] Drafter* drafter() const { return drafter_.get(); }

  /// Throws for a generation that ended because the target's logits were not finite: ErrorCode::checkpoint naming the
  /// damaged tensor where there is one, ErrorCode::internal otherwise.
  [[noreturn]] void explain(const std::string& problem) const;

 private:
  const OpenModel& open_;
  std::optional<Tokenizer> tokenizer_;
  std::string tokenizer_problem_;
  std::vector<TokenId> stop_ids_;
  mutable std::optional<ChatTemplate> template_;  ///< loaded when first used
  std::unique_ptr<Drafter> drafter_;
};

}  // namespace foresay
