#include "cli/generator.h"

#include <algorithm>

#include "base/error.h"
#include "base/system_seed.h"
#include "cli/interrupt.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "decode/lossless/tie.h"
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

/// Above each of several answers.
std::string heading(std::size_t choice) {
  return fmt::format("[choice {}]\n", choice);
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
  if (options.choices > 1 && !request_.options.sampling.seed) pin_seed(system_seed());  // one seed tells all answers
}

std::vector<Answer> Generator::run(int depth, const std::function<void(std::string_view)>& show) {
  const auto count = static_cast<std::size_t>(options_.choices);
  std::vector<std::optional<TextStream>> streams(count);
  std::vector<std::string> texts(count), shown(count);
  const auto put = [&](std::size_t choice, const std::string& piece) {
    if (!show || piece.empty()) return;
    choice == 0 ? show(piece) : (void)shown[choice].append(piece);
  };
  const auto put_text = [&](std::size_t choice, const std::string& piece) {
    texts[choice] += piece;
    if (shows_text()) put(choice, piece);
  };
  std::vector<bool> begun(count);
  if (count > 1) put(0, heading(0));
  GenerateRequest request = request_;
  request.options.depth = depth;
  const auto on_token = [&](int number, TokenId id) {
    const auto choice = static_cast<std::size_t>(number);
    if (!begun[choice] && text_.has_tokenizer()) streams[choice].emplace(text_.tokenizer(), options_.stop);
    if (!shows_text()) put(choice, fmt::format("{}{}", begun[choice] ? "," : "", id));
    begun[choice] = true;
    if (!streams[choice]) return false;
    put_text(choice, streams[choice]->push(id));
    return streams[choice]->stopped();
  };
  std::vector<Generation> generations =
      generate_choices(text_.model(), drafter_for(depth), request, options_.choices, on_token);

  std::vector<Answer> answers;
  for (std::size_t choice = 0; choice < count; ++choice) {
    if (streams[choice]) put_text(choice, streams[choice]->finish());
    if (choice > 0 && show) show(fmt::format("\n{}{}", heading(choice), shown[choice]));
    if (generations[choice].finish == Finish::error) text_.explain(generations[choice].problem);
    answers.push_back({std::move(generations[choice]), std::move(texts[choice])});
  }
  return answers;
}

void Generator::warm_up(int depth) const {
  GenerateRequest request = request_;
  request.prompt.resize(std::min(request.prompt.size(), kWarmUpPrompt));
  request.options.max_tokens = kWarmUpTokens;
  request.options.min_tokens = 0;
  request.options.depth = depth;
  (void)generate(
      text_.model(), drafter_for(depth), request);  // whatever goes wrong here goes wrong again where it is reported
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

bool Generator::part_at_ties(const std::vector<Answer>& plain, const std::vector<Answer>& drafted) const {
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const std::vector<TokenId>&a = plain[i].generation.ids, &b = drafted[i].generation.ids;
    DecodeOptions options = request_.options;
    options.sampling.choice += static_cast<std::uint32_t>(i);
    const double tolerance = text_.open().ops->tie_tolerance();
    if (a != b && !part_at_a_tie(text_.model(), request_.prompt, options, a, b, tolerance)) return false;
  }
  return true;
}

}  // namespace foresay::cli
