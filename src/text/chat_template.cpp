#include "text/chat_template.h"

#include <foresay_text/src/lib.rs.h>
#include <rust/cxx.h>

#include <array>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "text/rust_error.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

std::optional<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

Json read_tokenizer_config(const std::filesystem::path& path) {
  const auto text = read_file(path);
  if (!text) return Json::object();
  auto config = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) fail(ErrorCode::checkpoint, "[{}] expected a JSON object", path.string());
  return config;
}

/// bos_token and the like, each a string or an added token's description.
Json special_tokens_of(const Json& config) {
  Json tokens = Json::object();
  for (const auto& [key, value] : config.items()) {
    if (!key.ends_with("_token")) continue;
    if (value.is_string()) tokens[key] = value;
    if (value.is_object() && value.contains("content")) tokens[key] = value["content"];
  }
  return tokens;
}

/// "chat_template": a string, or [{"name": "default", "template": ...}, ...].
std::optional<std::string> template_of(const Json& config) {
  const auto found = config.find("chat_template");
  if (found == config.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (found->is_array()) {
    for (const auto& entry : *found) {
      if (!entry.is_object() || entry.value("name", Json()) != "default") continue;
      if (const auto source = entry.value("template", Json()); source.is_string()) return source.get<std::string>();
    }
  }
  return std::nullopt;
}

/// What transformers does to messages first: null entries are dropped, and reasoning is found under all its names.
Json normalised(const Json& messages) {
  if (!messages.is_array()) fail(ErrorCode::usage, "[chat template] messages: expected an array");
  Json result = Json::array();
  for (const auto& message : messages) {
    if (!message.is_object()) fail(ErrorCode::usage, "[chat template] messages: expected objects in the array");
    Json kept = Json::object();
    for (const auto& [key, value] : message.items()) {
      if (!value.is_null()) kept[key] = value;
    }
    for (const auto* name : {"reasoning_content", "thinking", "reasoning"}) {
      if (!kept.contains(name)) continue;
      const Json reasoning = kept[name];
      kept["reasoning_content"] = reasoning;
      if (!kept.contains("thinking")) kept["thinking"] = reasoning;
      break;
    }
    result.push_back(std::move(kept));
  }
  return result;
}

}  // namespace

struct ChatTemplate::Impl {
  rust::Box<rust_text::Template> parsed;
  Json special_tokens;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

ChatTemplate ChatTemplate::load(const std::filesystem::path& folder) {
  const auto config = read_tokenizer_config(folder / "tokenizer_config.json");
  auto source = read_file(folder / "chat_template.jinja");
  if (!source) source = template_of(config);
  if (!source) {
    fail(ErrorCode::checkpoint,
        "[{}] no chat template: expected chat_template.jinja, or chat_template in tokenizer_config.json",
        folder.string());
  }
  return parse(*source, special_tokens_of(config));
}

ChatTemplate ChatTemplate::parse(const std::string& source, const nlohmann::ordered_json& special_tokens) {
  try {
    auto parsed =
        rust_text::template_from_source({reinterpret_cast<const std::uint8_t*>(source.data()), source.size()});
    return ChatTemplate(std::make_unique<Impl>(Impl{std::move(parsed), special_tokens}));
  } catch (const rust::Error& error) {
    throw_rust_error(error, ErrorCode::checkpoint, "chat template");
  }
}

std::string ChatTemplate::render(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& args) const {
  Json variables = impl_->special_tokens;
  variables["messages"] = normalised(messages);
  // These three are always defined in transformers, so `is defined` in a template must say so here too.
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = false;
  for (const auto& [name, value] : args.items()) variables[name] = value;
  try {
    const auto json = variables.dump();
    return std::string(impl_->parsed->render({json.data(), json.size()}));
  } catch (const Json::type_error&) {
    fail(ErrorCode::usage, "[chat template] messages: expected valid UTF-8");
  } catch (const rust::Error& error) {
    throw_rust_error(error, ErrorCode::usage, "chat template");
  }
}

}  // namespace foresay
