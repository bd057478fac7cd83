// foresay verify: does the head leave this checkpoint's answers as they are? Greedy, coupled, together, ratio.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/open_model.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "cli/verify_prompts.h"
#include "decode/lossless/lossless.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kQuickPrompts = 3;
constexpr double kTie = 1e-3;  // scores closer than this may decide either way on a lane without row invariance

struct Options {
  ModelOptions model;
  std::string prompts, depths;
  std::optional<int> max_tokens;
  bool quick = false, json = false;
};

std::vector<int> parse_depths(const std::string& text) {
  std::vector<int> depths;
  for (const TokenId depth : parse_ids("--depth", text)) {
    if (depth < 1 || depth > 8) fail(ErrorCode::usage, "--depth: {}", mismatch("depths from 1 to 8, 1,2,3", text));
    depths.push_back(depth);
  }
  return depths;
}

LosslessOptions lossless_options(const Options& options) {
  LosslessOptions lossless;
  if (options.quick) {
    lossless.depths = {1, 3, 8};
    lossless.max_tokens = 16;
    lossless.samplers = 4;
    lossless.seeds = 1;
    lossless.ratio_prompts = 1;
    lossless.ratio_rounds = 200;
  }
  if (!options.depths.empty()) lossless.depths = parse_depths(options.depths);
  if (options.max_tokens) lossless.max_tokens = *options.max_tokens;
  lossless.cancel = &interrupted();
  return lossless;
}

Json check_json(const LosslessCheck& check) {
  return {{"name", check.name}, {"passed", check.passed}, {"prompts", check.prompts}, {"tokens", check.tokens},
      {"accepted", check.accepted}, {"rejected", check.rejected}, {"detail", check.detail}};
}

void print_check(const LosslessCheck& check) {
  write_out(fmt::format("{:<10}{:<8}{} prompts, {} tokens: {}\n", check.name, check.passed ? "passed" : "FAILED",
      check.prompts, check.tokens, check.detail));
}

int run(const Options& options) {
  LosslessOptions lossless = lossless_options(options);
  std::vector<VerifyPrompt> prompts;
  if (!options.prompts.empty()) prompts = read_verify_prompts(options.prompts);
  watch_interrupts();
  const auto open = open_model(options.model, options.json);
  Report report;
  const TextModel text(*open, report);
  say_report(report, /*json=*/true);
  if (prompts.empty()) prompts = built_in_prompts(text);

  if (!open->ops->describe().starts_with("cpu")) lossless.tie_tolerance = kTie;
  lossless.vocab_limit = text.vocab_limit();
  lossless.tie_tolerance = open->ops->tie_tolerance();
  lossless.stop_ids = text.stop_ids();
  lossless.on_target_problem = [&](const std::string& problem) { text.explain(problem); };
  if (!open->has_head()) {
    say(fmt::format(
        "note: nothing can be drafted ({}); only prompt chunks and batches are checked\n", open->loaded.mtp_reason));
  }
  const auto encoded =
      encode_prompts(prompts, text, options.quick && options.prompts.empty() ? kQuickPrompts : prompts.size());
  const auto checks = check_lossless(open->model(), text.drafter(), encoded, lossless,
      options.json ? nullptr : std::function<void(const LosslessCheck&)>(print_check));

  const bool passed = is_lossless(checks);
  const bool drafted =
      std::ranges::any_of(checks, [](const auto& check) { return check.accepted + check.rejected > 0; });
  if (passed && open->has_head() && !drafted) say_silent_head(*open, options.model, "verify");
  if (options.json) {
    Json document = {{"lossless", passed}, {"model", open->checkpoint.folder().string()},
        {"lane", open->ops->describe()}, {"head", open->loaded.mtp_reason}, {"checks", Json::array()}};
    for (const LosslessCheck& check : checks) document["checks"].push_back(check_json(check));
    write_json(document);
  } else {
    write_out(fmt::format("lossless: {}\n", passed ? "yes" : "NO"));
  }
  if (!passed) {
    fail(ErrorCode::check_failed, "[verify] the answers with the head are not those without it; please report this");
  }
  return 0;
}

}  // namespace

std::function<int()> add_verify(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_model_options(app, options->model);
  app.add_option("--prompts", options->prompts,
         "A file with a prompt per line, or a JSON list of \"text\", {\"prompt\": \"text\"}, {\"ids\": [1, 2]}; "
         "default: "
         "texts of its own")
      ->check(not_empty());
  app.add_option("--depth", options->depths, "Depths to check, 1,2,3; default: 1,2,3,5,8, capped by the head")
      ->check(not_empty());
  app.add_option("--max-tokens", options->max_tokens, "Most tokens of an answer; default: 32, with --quick 16")
      ->check(whole_number(2, 1 << 20));
  app.add_flag("--quick", options->quick, "Fewer prompts, depths, samplers and rounds");
  app.add_flag("--json", options->json, "Print one JSON document");
  app.footer(
      "Checks that drafting changes nothing: greedy and seeded ids at every depth equal plain decoding's, sequences "
      "in\n"
      "one batch get what they get alone, and ratio acceptance keeps the target's distribution. Exits 7 when it does "
      "not.\nSeeds are fixed: on one machine the outcome repeats.\n\nExample:\n  foresay verify models/tiny-qwen3_5 "
      "--quick");
  return [options] { return run(*options); };
}

}  // namespace foresay::cli
