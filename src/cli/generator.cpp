#include "cli/generator.h"

#include <algorithm>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "text/text_stream.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kWarmUpPrompt = 32;
constexpr int kWarmUpTokens = 8;

std::vector<TokenId> read_prompt(const GenerateOptions& options, const TextModel& model) {
  if (options.prompt_ids) return parse_ids("--prompt-ids", value_or_stdin("--prompt-ids", *options.prompt_ids));
  std::string text = value_or_stdin("--prompt", *options.prompt);
  expect_utf8("--prompt", text);
  if (text.empty()) fail(ErrorCode::usage, "--prompt: expected text, found nothing");
  if (options.chat) {
    Json messages = Json::array();
    if (!options.system.empty()) messages.push_back({{"role", "system"}, {"content", options.system}});
    messages.push_back({{"role", "user"}, {"content", text}});
    text = model.chat_prompt(messages);
  }
  return model.tokenizer().encode(text);
}

TextModel open_text(const OpenModel& open) {
  Report report;
  TextModel model(open, report);
  say_report(report, /*json=*/true);
  return model;
}

}  // namespace

Generator::Generator(const GenerateOptions& options, const OpenModel& open)
    : options_(options), text_(open_text(open)) {
  request_.prompt = read_prompt(options, text_);
  if (!options.stop.empty()) (void)text_.tokenizer();  // stop strings need one
  request_.options = options.decode;
  request_.prefill_chunk = options.chunk;
  request_.cancel = &interrupted();
  if (!options.ignore_eos) request_.options.stop_ids = text_.stop_ids();
  request_.options.sampling = sampling_for(options.sampling, text_);
}

GeneratorRun Generator::run(int depth, const std::function<void(std::string_view)>& show) {
  GeneratorRun run;
  std::optional<TextStream> stream;
  if (text_.has_tokenizer()) stream.emplace(text_.tokenizer(), options_.stop);
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
  if (run.generation.finish == Finish::error) text_.explain(run.generation.problem);
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
  return request_.options.sampling.greedy() || is_coupled();
}

bool Generator::is_coupled() const {
  return request_.options.sampling.effective_acceptance() == Acceptance::coupled;
}

Generation Generator::decode(const GenerateRequest& request) const {
  return generate(text_.model(), request.options.depth > 0 ? text_.drafter() : nullptr, request);
}

}  // namespace foresay::cli
