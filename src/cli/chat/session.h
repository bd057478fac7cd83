// cli/chat/session.h: one conversation with a model: what was said, and the next answer.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "decode/generate.h"
#include "library/text_model.h"

namespace foresay::cli {

struct ChatAnswer {
  std::string text;  ///< as it was shown; the end-of-turn token is no part of it
  Generation generation;
};

/// Tokens and drafts of several answers.
struct ChatTotals {
  int answers = 0;
  long tokens = 0, passes = 0, drafted = 0, accepted = 0;
  double seconds = 0;  ///< decoding
};

/// `model` must outlive it. Engine thread only.
class ChatSession {
 public:
  /// `options` holds sampling, depth and lengths; with a seed, turn t (from 0) has the noise of seed + t. Renders the
  /// template once, so that a checkpoint without one is refused before anybody types.
  ChatSession(const TextModel& model, DecodeOptions options, std::string system);

  /// The model's answer to `message`; `show` receives its text as it comes. An answer that is cancelled stays in the
  /// conversation as far as it came. Throws ErrorCode::usage when the message cannot be taken (too long, refused by the
  /// template, not UTF-8); the conversation is then as before.
  ChatAnswer answer(const std::string& message, const std::function<void(std::string_view)>& show);

  /// Forgets what was said; the system message stays.
  void reset();
  void set_system(std::string text) { system_ = std::move(text); }
  [[nodiscard]] const std::string& system() const { return system_; }

  /// Tokens drafted from the next answer on; capped by the head.
  void set_depth(int depth) { options_.depth = depth; }
  [[nodiscard]] int depth() const { return options_.depth; }

  [[nodiscard]] const TextModel& model() const { return model_; }
  [[nodiscard]] const ChatTotals& totals() const { return totals_; }

 private:
  [[nodiscard]] std::vector<TokenId> prompt_with(const std::string& message) const;

  const TextModel& model_;
  DecodeOptions options_;
  std::string system_;
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();  ///< without the system message
  int turn_ = 0;
  ChatTotals totals_;
};

}  // namespace foresay::cli
