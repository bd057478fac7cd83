// library/engine.h: a loaded checkpoint and the thread it lives on; what LanguageModel and its batches share.
#pragma once

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "foresay/foresay.h"
#include "library/engine_thread.h"
#include "library/open_model.h"
#include "library/text_model.h"

namespace foresay {

class Engine {
 public:
  /// Opens the folder on the engine's thread. Throws as OpenModel does; `report` then still holds what was noticed.
  /// `options` must be valid.
  Engine(const std::string& folder, const ModelOptions& options, Report& report);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Any thread.
  [[nodiscard]] const ModelDescription& description() const { return description_; }
  [[nodiscard]] const Tokenizer& tokenizer() const { return text_->tokenizer(); }
  [[nodiscard]] std::string chat_prompt(const nlohmann::ordered_json& messages, nlohmann::ordered_json variables) const;
  [[nodiscard]] EngineThread& thread() { return thread_; }
  [[nodiscard]] MtpMode mtp() const { return mtp_; }
  [[nodiscard]] int prefill_chunk() const { return prefill_chunk_; }

  /// On the engine's thread only, but for what it says of tokenizer and vocabulary.
  [[nodiscard]] const TextModel& text() const { return *text_; }

 private:
  MtpMode mtp_;
  int prefill_chunk_;
  EngineThread thread_;
  std::unique_ptr<OpenModel> open_;  ///< made and dropped on thread_
  std::unique_ptr<TextModel> text_;  ///< made and dropped on thread_
  ModelDescription description_;
  mutable std::mutex template_mutex_;  ///< guards the chat template, which text_ loads when it is first used
};

}  // namespace foresay
