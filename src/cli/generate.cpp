// foresay generate: one prompt, streamed; with --compare also decoded without the head, and the two checked against
// each other.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/generate_report.h"
#include "cli/generator.h"
#include "cli/interrupt.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "cli/verb.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostChoices = 256, kMostLogProbabilities = 1000;  // what one document can sensibly hold

/// What can be refused before a model is opened.
void check(GenerateOptions& options) {
  if (options.prompt.has_value() == options.prompt_ids.has_value()) {
    fail(ErrorCode::usage, "expected one of --prompt TEXT and --prompt-ids 1,2,3, found {}; - reads stdin",
        options.prompt ? "both" : "neither");
  }
  options.chat = options.chat || !options.system.empty();
  if (options.chat && !options.prompt)
    fail(ErrorCode::usage, "--chat and --system need --prompt: ids are taken as they are");
  expect_utf8("--system", options.system);
  for (const std::string& stop : options.stop) expect_utf8("--stop", stop);
  check_sampling(options.sampling, options.decode);
  if (options.decode.top_logprobs && !options.json)
    fail(ErrorCode::usage,
        "--logprobs: expected --json beside it, found none: log-probabilities are part of the document");
  if (options.choices > 1 && options.sampling.numbers.greedy()) {
    fail(ErrorCode::usage, "--choices: expected 1 at --temperature 0, where all answers are the same, found {}",
        options.choices);
  }
}

/// What became of the head. The second token's pass drafts unless it must be the last. So rounds without a single draft
/// mean that the head's logits are not finite: as unusable as a head that does not load, and refused or reported as
/// that is.
MtpOutcome outcome_of(const GenerateOptions& options, const OpenModel& open, std::span<const Answer> answers) {
  const Stats& stats = total_of(answers);
  MtpOutcome outcome = {options.model.mtp, has_drafted(stats), open.loaded.mtp_reason};
  if (outcome.effective || !open.has_head()) return outcome;
  outcome.reason = stats.depth == 0 ? "depth 0 was asked for" : "nothing was drafted: the answer was too short";
  const bool had_to_draft =
      std::ranges::any_of(answers, [](const Answer& answer) { return answer.generation.stats.passes >= 2; });
  if (stats.depth == 0 || !had_to_draft) return outcome;

  outcome.reason = say_silent_head(open, options.model, "generate");
  return outcome;
}

int run(GenerateOptions& options) {
  check(options);
  watch_interrupts();
  const auto opened = open_model(options.model, options.json);
  const OpenModel& open = *opened;
  const ModelInfo& info = open.model().info();
  if (info.head_layers > 0 && options.decode.depth > info.max_depth) {
    say(fmt::format("note: depth {} is capped to {}, what this head can do\n", options.decode.depth, info.max_depth));
  }
  Generator generator(options, open);
  if (options.compare) generator.warm_up(options.decode.depth);
  const std::function<void(std::string_view)> stream =
      options.json ? nullptr : std::function<void(std::string_view)>(write_out);
  const std::vector<Answer> answers = generator.run(options.decode.depth, stream);
  if (!options.json) write_out("\n");
  const MtpOutcome outcome = outcome_of(options, open, answers);
  const Stats stats = total_of(answers);

  std::vector<Answer> plain;
  if (options.compare && !interrupted()) {
    generator.pin_seed(answers.front().generation.seed);
    plain = generator.run(0, nullptr);
    if (interrupted()) plain.clear();
  }
  const bool identical = std::ranges::equal(
      answers, plain, [](const Answer& a, const Answer& b) { return a.generation.ids == b.generation.ids; });

  const bool must_be_identical = generator.must_be_identical();
  const bool ties = !plain.empty() && !identical && must_be_identical && generator.part_at_ties(plain, answers);

  if (options.json) {
    Json document = {{"model", open.checkpoint.folder().string()}, {"prompt_ids", generator.prompt()}};
    if (answers.size() == 1) document.update(answer_json(answers.front(), generator));
    for (std::size_t i = 0; answers.size() > 1 && i < answers.size(); ++i) {
      document["choices"].push_back(answer_json(answers[i], generator));
      document["choices"].back()["stats"] = stats_json(answers[i].generation.stats, outcome);
    }
    if (generator.is_coupled()) document["seed"] = answers.front().generation.seed;
    if (!plain.empty()) document["identical"] = identical;
    if (ties) document["differs_behind_a_tie"] = true;
    document["stats"] = stats_json(stats, outcome);
    document["stats"]["lane"] = open.ops->describe();
    if (!plain.empty()) {
      document["ar_stats"] = stats_json(total_of(plain), {"off", false, "the comparison runs without the head"});
    }
    write_json(document);
  } else if (!plain.empty()) {
    const char* const verdict = identical           ? "yes"
                                : ties              ? "up to a tie of this lane (docs/numerics.md)"
                                : must_be_identical ? "NO"
                                                    : "no (ratio acceptance keeps the distribution, not the draw)";
    write_out(fmt::format("\n{}identical to AR: {}\n", comparison_report(total_of(plain), stats), verdict));
  } else {
    say("\n" + run_report(stats));
  }
  say(poor_acceptance_warning(stats));
  if (interrupted()) {
    if (!options.json) say("interrupted\n");
    return exit_code(ErrorCode::cancelled);
  }
  if (!plain.empty() && !identical && must_be_identical && !ties) {
    fail(ErrorCode::check_failed,
        "[generate] --compare: the ids with the head differ from plain decoding's; please report this");
  }
  return 0;
}

}  // namespace

std::function<int()> add_generate(CLI::App& app) {
  auto options = std::make_shared<GenerateOptions>();
  add_model_options(app, options->model);
  app.add_option("--prompt", options->prompt, "The prompt; - reads it from stdin");
  app.add_option("--prompt-ids", options->prompt_ids,
      "The prompt as token ids, 1,2,3; - reads them from stdin; needs no tokenizer");
  app.add_flag("--chat", options->chat, "Put the prompt through the checkpoint's chat template as the user's turn");
  app.add_option("--system", options->system, "System message; implies --chat");
  add_length_options(app, options->decode);
  add_sampling_options(app, options->sampling);
  add_drafting_options(app, options->decode);
  app.add_option("--prefill-chunk", options->chunk, "Prompt rows per pass; 0 is all at once")
      ->check(whole_number(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--stop", options->stop, "Stop before this text; may be given several times")->allow_extra_args(false);
  app.add_flag("--ignore-eos", options->ignore_eos, "Go on past end-of-turn tokens");
  app.add_option("-n,--choices", options->choices, "Answers to the prompt, which is read once")
      ->check(whole_number(1, kMostChoices))
      ->capture_default_str();
  app.add_option_function<std::vector<std::string>>(
         "--logprobs",
         [options](const std::vector<std::string>& given) {
           options->decode.top_logprobs = given.front().empty() ? 0 : *parse_number<int>(given.front());
         },
         "Log-probability of each token, and of N most likely others; needs --json")
      ->expected(0, 1)
      ->check(whole_number(0, kMostLogProbabilities))
      ->type_name("[N]");
  app.add_flag("--compare", options->compare,
      "Also decode without the head, print both speeds, and fail (7) where ids differ that must not");
  app.add_flag("--json", options->json, "Print one JSON document instead of streaming");
  app.footer(
      "Examples:\n  foresay generate --prompt 'def main():' --max-tokens 64 --compare\n"
      "  foresay generate models/tiny-qwen3_5-4bit --chat --prompt 'Write a function' --temperature 0.8 --seed 7");
  return [options] { return run(*options); };
}

}  // namespace foresay::cli
