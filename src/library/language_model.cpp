#include "base/error.h"
#include "checkpoint/hub_cache.h"
#include "library/bundled_model.h"
#include "library/engine.h"
#include "library/request_json.h"
#include "text/detokenizer.h"

namespace foresay {
namespace {

void tell(const Report& report, const ModelOptions& options) {
  if (options.on_note) {
    for (const std::string& note : report.notes()) options.on_note(note);
  }
  if (options.on_warning) {
    for (const std::string& warning : report.warnings()) options.on_warning(warning);
  }
}

}  // namespace

std::string_view name_of(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::running:
      return "running";
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
  }
  return "?";
}

LanguageModel::LanguageModel(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

LanguageModel LanguageModel::load(const std::string& folder_or_name, const ModelOptions& options) {
  validate(options);
  Report report;
  std::shared_ptr<Engine> engine;
  try {
    const auto folder = folder_or_name.empty() ? bundled_model() : resolve_checkpoint(folder_or_name);
    engine = std::make_shared<Engine>(folder.string(), options, report);
  } catch (const Error&) {
    tell(report, options);  // the warnings often hold the reason
    throw;
  }
  tell(report, options);
  return LanguageModel(std::move(engine));
}

const ModelDescription& LanguageModel::description() const {
  return engine_->description();
}

std::vector<TokenId> LanguageModel::encode(std::string_view text) const {
  return engine_->tokenizer().encode(text);
}

std::string LanguageModel::decode(const std::vector<TokenId>& ids, bool skip_special) const {
  const Tokenizer& tokenizer = engine_->tokenizer();
  Detokenizer detokenizer(tokenizer, skip_special);
  std::string text;
  for (const TokenId id : ids) {
    if (id < 0 || id >= description().vocab) {
      fail(ErrorCode::usage, "ids: expected 0 to {}, found {}", description().vocab - 1, id);
    }
    text += detokenizer.push(id);
  }
  return text + detokenizer.finish();
}

std::string LanguageModel::chat_prompt(const std::vector<Message>& messages, std::string_view variables) const {
  return engine_->chat_prompt(json_of(messages), json_object("variables", variables));
}

std::string LanguageModel::chat_prompt_json(std::string_view messages, std::string_view variables) const {
  return engine_->chat_prompt(json_array("messages", messages), json_object("variables", variables));
}

Answer LanguageModel::generate(const Request& request, OnPiece on_piece) const {
  if (request.n != 1)
    fail(ErrorCode::usage, "n: expected 1, found {}; generate_all() gives several answers", request.n);
  RequestBatch together = batch();
  const int handle = together.add(request, std::move(on_piece));
  together.run();
  return together.take(handle);
}

std::vector<Answer> LanguageModel::generate_all(const std::vector<Request>& requests, const OnPiece& on_piece) const {
  for (const Request& request : requests) validate(request);
  RequestBatch together = batch();
  int count = 0;
  for (const Request& request : requests) count = together.add(request, on_piece) + request.n;
  together.run();
  std::vector<Answer> answers;
  for (int handle = 0; handle < count; ++handle) answers.push_back(together.take(handle));
  return answers;
}

RequestBatch LanguageModel::batch() const {
  return RequestBatch(engine_);
}

}  // namespace foresay
