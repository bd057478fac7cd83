#include "cli/generator.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "checkpoint/finite.h"
#include "cli/interrupt.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "decode/draft/mtp_drafter.h"
#include "text/chat_template.h"
#include "text/text_stream.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kWarmUpPrompt = 32;
constexpr int kWarmUpTokens = 8;

/// The tokenizer, where one is needed or at hand. Ids alone need none, but its size still says where padding rows
/// begin.
std::optional<Tokenizer> open_tokenizer(const OpenModel& open, bool needed) {
  const bool exists = std::filesystem::exists(open.folder / "tokenizer.json");
  if (!exists && !needed) return std::nullopt;
  if (!exists) {
    fail(ErrorCode::checkpoint, "[generate] {}: text needs tokenizer.json, found none; add it, or give --prompt-ids",
        open.folder.string());
  }
  try {
    return Tokenizer::load(open.folder);
  } catch (const Error& error) {
    if (needed) throw;
    say(fmt::format("warning: {}; the ids are used without it\n", error.what()));
    return std::nullopt;
  }
}

/// Every id that ends a turn: the config files' union, and the family's own markers where the vocabulary has them.
std::vector<TokenId> stop_ids(const OpenModel& open, const std::optional<Tokenizer>& tokenizer) {
  std::set<TokenId> ids;
  for (const int id : declared_eos_ids(open.checkpoint)) ids.insert(id);
  if (tokenizer) {
    std::vector<std::string> names = open.loaded.model->info().turn_ends;
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

std::vector<TokenId> read_prompt(
    const GenerateOptions& options, const OpenModel& open, const std::optional<Tokenizer>& tokenizer) {
  if (options.prompt_ids) return parse_ids("--prompt-ids", value_or_stdin("--prompt-ids", *options.prompt_ids));
  std::string text = value_or_stdin("--prompt", *options.prompt);
  expect_utf8("--prompt", text);
  if (text.empty()) fail(ErrorCode::usage, "--prompt: expected text, found nothing");
  if (options.chat) {
    Json messages = Json::array();
    if (!options.system.empty()) messages.push_back({{"role", "system"}, {"content", options.system}});
    messages.push_back({{"role", "user"}, {"content", text}});
    text = ChatTemplate::load(open.folder).render(messages, {{"add_generation_prompt", true}});
  }
  return tokenizer->encode(text);
}

}  // namespace

Generator::Generator(const GenerateOptions& options, const OpenModel& open)
    : options_(options),
      open_(open),
      model_(*open.loaded.model),
      tokenizer_(open_tokenizer(open, options.prompt.has_value() || !options.stop.empty())) {
  request_.prompt = read_prompt(options, open, tokenizer_);
  request_.options = options.decode;
  request_.prefill_chunk = options.chunk;
  request_.cancel = &interrupted();
  if (!options.ignore_eos) request_.options.stop_ids = stop_ids(open, tokenizer_);
  if (tokenizer_) request_.options.sampling.vocab_limit = tokenizer_->size();
}

GeneratorRun Generator::run(int depth, const std::function<void(std::string_view)>& show) {
  GeneratorRun run;
  std::optional<TextStream> stream;
  if (tokenizer_) stream.emplace(*tokenizer_, options_.stop);
  const auto put = [&](const std::string& text) {
    run.text += text;
    if (shows_text() && show && !text.empty()) show(text);
  };
  bool first = true;
  GenerateRequest request = request_;
  request.options.depth = depth;
  request.on_token = [&](TokenId id) {
    if (!shows_text() && show) show(fmt::format("{}{}", first ? "" : ",", id));
    first = false;
    if (!stream) return false;
    put(stream->push(id));
    return stream->stopped();
  };
  run.generation = decode(request);
  if (stream) put(stream->finish());
  if (run.generation.finish == Finish::error) explain(run.generation.problem);
  return run;
}

void Generator::warm_up(int depth) const {
  GenerateRequest request = request_;
  request.prompt.resize(std::min(request.prompt.size(), kWarmUpPrompt));
  request.options.max_tokens = kWarmUpTokens;
  request.options.depth = depth;
  (void)decode(request);  // whatever goes wrong here goes wrong again where it is reported
}

void Generator::pin_seed(std::uint64_t seed) {
  request_.options.sampling.acceptance = request_.options.sampling.effective_acceptance();
  request_.options.sampling.seed = seed;
}

bool Generator::must_be_identical() const {
  const SamplingOptions& sampling = request_.options.sampling;
  return sampling.greedy() || sampling.effective_acceptance() == Acceptance::coupled;
}

Generation Generator::decode(const GenerateRequest& request) const {
  std::optional<MtpDrafter> drafter;
  if (request.options.depth > 0 && model_.info().head_layers > 0) drafter.emplace(model_);
  return generate(model_, drafter ? &*drafter : nullptr, request);
}

void Generator::explain(const std::string& problem) const {
  if (const auto damage = find_non_finite(open_.checkpoint)) {
    fail(ErrorCode::checkpoint, "[generate] {}: {}; the checkpoint is damaged, fetch it again", problem, *damage);
  }
  fail(ErrorCode::internal, "[generate] {}", problem);
}

}  // namespace foresay::cli
