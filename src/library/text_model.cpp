#include "library/text_model.h"

#include <charconv>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "checkpoint/finite.h"
#include "decode/draft/make_mtp_drafter.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

std::vector<TokenId> find_stop_ids(const OpenModel& open, const std::optional<Tokenizer>& tokenizer) {
  std::set<TokenId> ids;
  for (const int id : declared_eos_ids(open.checkpoint)) ids.insert(id);
  if (tokenizer) {
    std::vector<std::string> names = open.model().info().turn_ends;
    const nlohmann::json& config = open.checkpoint.tokenizer_config().json();
    nlohmann::json eos = config.value("eos_token", nlohmann::json());
    if (eos.is_object()) eos = eos.value("content", nlohmann::json());
    if (eos.is_string()) names.push_back(eos.get<std::string>());
    for (const std::string& name : names) {
      if (const auto id = tokenizer->id_of(name)) ids.insert(*id);
    }
  }
  return {ids.begin(), ids.end()};
}

/// Ids that the tokenizer keeps beside its BPE: special tokens, ends of turns, marks of tools and of thinking. They are
/// high, and drafts must reach them.
std::vector<TokenId> added_ids(const OpenModel& open) {
  std::vector<TokenId> ids;
  const nlohmann::json& config = open.checkpoint.tokenizer_config().json();
  const auto added = config.find("added_tokens_decoder");
  if (added == config.end() || !added->is_object()) return ids;
  for (const auto& [key, token] : added->items()) {
    TokenId id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error == std::errc() && end == key.data() + key.size()) ids.push_back(id);
  }
  return ids;
}

}  // namespace

TextModel::TextModel(const OpenModel& open, Report& report) : open_(open) {
  const std::filesystem::path& folder = open.checkpoint.folder();
  if (std::filesystem::exists(folder / "tokenizer.json")) {
    try {
      tokenizer_ = Tokenizer::load(folder);
    } catch (const Error& error) {
      tokenizer_problem_ = error.what();
      report.warn(fmt::format("{}; ids are used without it", error.what()));
    }
  } else {
    tokenizer_problem_ =
        fmt::format("[generate] {}: text needs tokenizer.json, found none; add it, or give token ids", folder.string());
  }
  stop_ids_ = find_stop_ids(open, tokenizer_);
  if (open.has_head()) {
    std::vector<TokenId> always = added_ids(open);
    always.insert(always.end(), stop_ids_.begin(), stop_ids_.end());
    drafter_ = make_mtp_drafter(open.model(), std::move(always));
  }
}

const Tokenizer& TextModel::tokenizer() const {
  if (!tokenizer_) throw Error(ErrorCode::checkpoint, tokenizer_problem_);
  return *tokenizer_;
}

TokenId TextModel::vocab_limit() const {
  const TokenId rows = model().info().vocab;
  return tokenizer_ ? std::min<TokenId>(tokenizer_->size(), rows) : rows;
}

std::string TextModel::chat_prompt(const Json& messages, Json variables) const {
  if (!template_) template_ = ChatTemplate::load(open_.checkpoint.folder());
  if (!variables.contains("add_generation_prompt")) variables["add_generation_prompt"] = true;
  return template_->render(messages, variables);
}

void TextModel::explain(const std::string& problem) const {
  if (const auto damage = find_non_finite(open_.checkpoint)) {
    fail(ErrorCode::checkpoint, "[generate] {}: {}; the checkpoint is damaged, fetch it again", problem, *damage);
  }
  fail(ErrorCode::internal, "[generate] {}", problem);
}

}  // namespace foresay
