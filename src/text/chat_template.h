// text/chat_template.h: messages -> prompt text, by the checkpoint's own Jinja template.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace foresay {

/// A parsed chat template with the checkpoint's special tokens. Immutable; any thread.
class ChatTemplate {
 public:
  /// From chat_template.jinja, else tokenizer_config.json "chat_template" (a string, or a list whose "default" entry is
  /// used). Throws ErrorCode::checkpoint when there is none or it does not parse.
  [[nodiscard]] static ChatTemplate load(const std::filesystem::path& folder);
  /// From source text; `special_tokens` are extra variables (bos_token, eos_token, ...).
  [[nodiscard]] static ChatTemplate parse(
      const std::string& source, const nlohmann::ordered_json& special_tokens = nlohmann::ordered_json::object());
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// Renders as transformers' apply_chat_template does.
  ///   messages  array of {role, content, ...}
  ///   args      further variables: tools, add_generation_prompt, enable_thinking, ...
  /// Throws ErrorCode::usage with the template's own message when it raises.
  [[nodiscard]] std::string render(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& args) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foresay
