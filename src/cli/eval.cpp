// foresay eval: what the model computes for given ids, as a safetensors file, layer by layer where asked for; what two
// such files differ in; and how well it predicts a text (cli/eval_text.h).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/finite.h"
#include "checkpoint/safetensors.h"
#include "cli/eval_diff.h"
#include "cli/eval_text.h"
#include "cli/open_model.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "decode/evaluate.h"
#include "decode/sample/row.h"

namespace foresay::cli {
namespace {

struct Options {
  ModelOptions model;
  std::string ids, out;
  std::string text, against;  ///< either, or a window, asks for figures instead of a dump
  std::optional<int> window;
  int depth = 3;
  int chunk = 512;
  bool layers = false, json = false;
  std::vector<std::string> diff;  ///< two files to compare; empty: evaluate
  double tolerance = 1e-4;
};

/// Logits that are not finite: an error that names the weight to blame. Where every weight is finite they are a result.
void refuse_damage(const Evaluation& result, const Checkpoint& checkpoint) {
  const bool finite =
      row_problem(result.logits).empty() && std::all_of(result.mtp_logits.begin(), result.mtp_logits.end(),
                                                [](const auto& logits) { return row_problem(logits).empty(); });
  if (finite) return;
  if (const auto damage = find_non_finite(checkpoint)) {
    fail(ErrorCode::checkpoint, "[eval] the logits are not finite: {}; the checkpoint is damaged, fetch it again",
        *damage);
  }
  say("warning: some logits are not finite, although every weight is\n");
}

/// What goes into the file, in order of execution.
std::vector<TensorToWrite> tensors_of(const Evaluation& result) {
  std::vector<TensorToWrite> tensors;
  const auto add = [&](std::string name, int rows, int width, const std::vector<float>& values) {
    tensors.push_back({std::move(name), DType::f32, {rows, width}, values.data()});
  };
  const auto add_layers = [&](const std::string& step) {  // "" is the trunk
    for (const NamedRows& layer : result.layers) {
      if (step.empty() ? layer.name.starts_with("mtp.") : !layer.name.starts_with(step)) continue;
      add("layer/" + layer.name, static_cast<int>(layer.values.size()) / layer.width, layer.width, layer.values);
    }
  };
  add_layers("");
  add("hidden_pre_norm", result.positions, result.hidden, result.hidden_pre_norm);
  add("hidden_post_norm", result.positions, result.hidden, result.hidden_post_norm);
  add("logits", result.positions, result.vocab, result.logits);
  for (std::size_t s = 0; s < result.mtp_logits.size(); ++s) {
    add_layers(fmt::format("mtp.{}.", s + 1));
    add(fmt::format("mtp_logits.{}", s + 1), result.positions - static_cast<int>(s) - 1, result.vocab,
        result.mtp_logits[s]);
  }
  return tensors;
}

int compare(const Options& options) {
  if (!options.model.folder.empty()) {
    fail(ErrorCode::usage, "--diff: expected no MODEL beside it, found {}; it compares files", options.model.folder);
  }
  const auto differences = diff_dumps(options.diff[0], options.diff[1], options.tolerance);
  if (options.json) {
    write_json(diff_json(differences, options.tolerance));
  } else {
    write_out(diff_text(differences, options.tolerance));
  }
  const bool within = std::ranges::none_of(differences, &TensorDifference::above);
  return within ? 0 : exit_code(ErrorCode::check_failed);
}

int run(const Options& options) {
  if (!options.diff.empty()) return compare(options);
  if (!options.text.empty() || !options.against.empty() || options.window) {
    return eval_text({.model = options.model,
        .text = options.text,
        .ids = options.ids,
        .out = options.out,
        .against = options.against,
        .window = options.window,
        .depth = options.depth,
        .chunk = options.chunk,
        .json = options.json});
  }
  for (const auto& [name, value] : {std::pair("--ids", &options.ids), std::pair("--out", &options.out)}) {
    if (value->empty()) fail(ErrorCode::usage, "{}: expected a value, found none; see `foresay eval --help`", name);
  }
  const std::vector<TokenId> ids = parse_ids("--ids", value_or_stdin("--ids", options.ids));
  const auto open = open_model(options.model, options.json);
  const Evaluation result = evaluate(open->model(), ids, options.depth, options.chunk, options.layers);
  refuse_damage(result, open->checkpoint);
  const std::vector<TensorToWrite> tensors = tensors_of(result);
  write_safetensors(options.out, tensors);

  const int depth = std::min(options.depth, open->model().info().max_depth);
  if (options.json) {
    nlohmann::ordered_json document = {{"model", open->checkpoint.folder().string()}, {"lane", open->ops->describe()},
        {"ids", ids.size()}, {"depth", depth}, {"out", options.out}};
    for (const TensorToWrite& tensor : tensors) document["tensors"][tensor.name] = tensor.shape;
    write_json(document);
  } else {
    for (const TensorToWrite& tensor : tensors)
      write_out(fmt::format("{} {}\n", tensor.name, describe_shape(tensor.shape)));
  }
  return 0;
}

}  // namespace

std::function<int()> add_eval(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_model_options(app, options->model);
  auto* const ids = app.add_option("--ids", options->ids, "Token ids, 1,2,3; - reads them from stdin");
  auto* const out = app.add_option("--out", options->out, "The safetensors file to write")->check(not_empty());
  app.add_option("--depth", options->depth, "Draft steps of the head, capped by what it can do")
      ->check(whole_number(0, 8))
      ->capture_default_str();
  app.add_option("--prefill-chunk", options->chunk, "Rows per pass; 0 is all at once")
      ->check(whole_number(0, 1 << 20))
      ->capture_default_str();
  auto* const layers = app.add_flag(
      "--layers", options->layers, "Also write every named intermediate tensor, as layer/NAME, in order of execution");
  auto* const diff =
      app.add_option("--diff", options->diff, "Compare two files that --out wrote, and fail (7) where they differ")
          ->expected(2)
          ->type_name("A B")
          ->excludes(ids)
          ->excludes(out)
          ->excludes(layers);
  app.add_option("--tolerance", options->tolerance, "Largest difference of --diff: RMS relative to A's values")
      ->check(number(">= 0", [](double x) { return x >= 0; }))
      ->capture_default_str();
  auto* const text = app.add_option("--text", options->text,
                            "A file to predict, - is stdin: perplexity, bits per byte, top-1, the head's acceptance; "
                            "--out then writes ids and "
                            "logits")
                         ->check(not_empty())
                         ->excludes(ids);
  auto* const against =
      app.add_option("--against", options->against,
             "Logits that an earlier run over the same ids wrote: KL from it to this run, and what else differs")
          ->check(not_empty());
  auto* const window =
      app.add_option("--window", options->window,
             "Tokens per window of --text; each starts afresh, and its first predicts its second. Default 512, or what "
             "--against was written with. With --ids: figures as for a text")
          ->check(whole_number(2, 1 << 24));
  for (auto* const one : {text, against, window}) one->excludes(layers)->excludes(diff);
  app.add_flag("--json", options->json, "Print one JSON document");
  app.footer(
      "Writes logits, hidden_pre_norm and hidden_post_norm for every position, and mtp_logits.s for every position "
      "whose\n"
      "next s ids are given, all float32. With --text memory stays small, and --out writes 4 bytes per token and id of "
      "the\nvocabulary.\n\nExamples:\n"
      "  foresay eval models/tiny-qwen3_5 --ids 259,497,259,304 --out out.safetensors\n"
      "  foresay eval --ids 259,497 --layers --lane cpu --out a.safetensors\n"
      "  foresay eval --ids 259,497 --layers --lane mlx --out b.safetensors\n"
      "  foresay eval --text book.txt --out float.safetensors\n"
      "  foresay eval --text book.txt --against float.safetensors --json\n"
      "  foresay eval --diff a.safetensors b.safetensors --tolerance 1e-4");
  return [options] { return run(*options); };
}

}  // namespace foresay::cli
