#include "library/engine.h"

#include "base/error.h"
#include "checkpoint/hub_cache.h"
#include "library/field_names.h"

namespace foresay {
namespace {

ModelDescription describe(const TextModel& text) {
  const OpenModel& open = text.open();
  const ModelInfo& info = open.model().info();
  return {.folder = open.checkpoint.folder().string(),
      .family = info.family,
      .model_type = info.model_type,
      .lane = open.ops->describe(),
      .context = info.context,
      .vocab = info.vocab,
      .has_tokenizer = text.has_tokenizer(),
      .has_head = open.has_head(),
      .max_depth = info.max_depth,
      .head_reason = open.loaded.mtp_reason,
      .stop_ids = text.stop_ids()};
}

}  // namespace

Engine::Engine(const std::string& folder, const ModelOptions& options, Report& report)
    : mtp_(mtp_mode(options.mtp)), prefill_chunk_(options.prefill_chunk) {
  thread_.run([&] {
    const LaneOptions lane = {.lane = options.lane, .device = options.device, .threads = options.threads};
    open_ = naming_fields([&] {
      return std::make_unique<OpenModel>(
          OpenOptions{.folder = resolve_checkpoint(folder), .mtp = mtp_, .lane = lane}, report);
    });
    text_ = std::make_unique<TextModel>(*open_, report);
    description_ = describe(*text_);
  });
}

Engine::~Engine() {
  thread_.run([&] {
    text_.reset();
    open_.reset();
  });
}

std::string Engine::chat_prompt(const nlohmann::ordered_json& messages, nlohmann::ordered_json variables) const {
  const std::lock_guard lock(template_mutex_);
  return text_->chat_prompt(messages, std::move(variables));
}

}  // namespace foresay
