// foresay eval: what the model computes for given ids, as a safetensors file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/finite.h"
#include "checkpoint/safetensors.h"
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
  int depth = 3;
  int chunk = 512;
  bool json = false;
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

int run(const Options& options) {
  const std::vector<TokenId> ids = parse_ids("--ids", value_or_stdin("--ids", options.ids));
  const auto open = open_model(options.model, options.json);
  const Evaluation result = evaluate(open->model(), ids, options.depth, options.chunk);
  refuse_damage(result, open->checkpoint);

  std::vector<TensorToWrite> tensors;
  const auto add = [&](std::string name, int rows, int width, const std::vector<float>& values) {
    tensors.push_back({std::move(name), DType::f32, {rows, width}, values.data()});
  };
  add("logits", result.positions, result.vocab, result.logits);
  add("hidden_pre_norm", result.positions, result.hidden, result.hidden_pre_norm);
  add("hidden_post_norm", result.positions, result.hidden, result.hidden_post_norm);
  for (std::size_t s = 0; s < result.mtp_logits.size(); ++s) {
    add(fmt::format("mtp_logits.{}", s + 1), result.positions - static_cast<int>(s) - 1, result.vocab,
        result.mtp_logits[s]);
  }
  write_safetensors(options.out, tensors);

  const int depth = std::min(options.depth, open->model().info().max_depth);
  if (options.json) {
    nlohmann::ordered_json document = {
        {"model", open->checkpoint.folder().string()}, {"ids", ids.size()}, {"depth", depth}, {"out", options.out}};
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
  app.add_option("--ids", options->ids, "Token ids, 1,2,3; - reads them from stdin")->required();
  app.add_option("--out", options->out, "The safetensors file to write")->required()->check(not_empty());
  app.add_option("--depth", options->depth, "Draft steps of the head, capped by what it can do")
      ->check(whole_number(0, 8))
      ->capture_default_str();
  app.add_option("--prefill-chunk", options->chunk, "Rows per pass; 0 is all at once")
      ->check(whole_number(0, 1 << 20))
      ->capture_default_str();
  app.add_flag("--json", options->json, "Print one JSON document");
  app.footer(
      "Writes logits, hidden_pre_norm and hidden_post_norm for every position, and mtp_logits.s for every position "
      "whose\n"
      "next s ids are given, all float32.\n\nExample:\n  foresay eval models/tiny-qwen3_5 --ids 259,497,259,304 --out "
      "out.safetensors");
  return [options] { return run(*options); };
}

}  // namespace foresay::cli
