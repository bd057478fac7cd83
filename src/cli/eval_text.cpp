#include "cli/eval_text.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/mapped_file.h"
#include "cli/interrupt.h"
#include "cli/logits_file.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "decode/score/compare_rows.h"
#include "decode/score/score_text.h"
#include "library/text_model.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::ordered_json;

/// What is scored, read before the model is opened.
struct Source {
  std::shared_ptr<const MappedFile> file;  ///< keeps `text` alive where it is mapped
  std::string piped;
  std::string_view text;
  std::vector<TokenId> ids;  ///< given instead of a text
};

Source read_source(const TextOptions& options) {
  Source source;
  if (options.text.empty()) {
    if (options.ids.empty()) fail(ErrorCode::usage, "--text: expected a file, or --ids, found neither");
    source.ids = parse_ids("--ids", value_or_stdin("--ids", options.ids));
    return source;
  }
  if (options.text == "-") {
    source.piped = value_or_stdin("--text", options.text);
    source.text = source.piped;
  } else {
    try {
      source.file = MappedFile::open(options.text, "eval");
    } catch (const Error& error) {  // a bad argument here, not a damaged checkpoint
      fail(ErrorCode::usage, "--text: {}", error.what());
    }
    source.text = source.file->text();
  }
  if (source.text.empty()) fail(ErrorCode::usage, "--text: expected text, found an empty file: {}", options.text);
  expect_utf8("--text", source.text);
  return source;
}

int choose_window(const TextOptions& options, const ReferenceLogits* reference, int context) {
  if (reference != nullptr && options.window && *options.window != reference->window()) {
    fail(ErrorCode::usage, "--window: expected {}, which {} was written with, found {}; leave it out to take that",
        reference->window(), options.against, *options.window);
  }
  const int window = reference != nullptr ? reference->window() : options.window.value_or(std::min(512, context));
  if (window > context) {
    fail(ErrorCode::usage, "--window: expected 2 to {}, which this checkpoint's context holds, found {}", context,
        window);
  }
  return window;
}

/// Bytes of the predicted tokens: all but the first of each window.
std::size_t predicted_bytes(const Tokenizer& tokenizer, std::span<const TokenId> ids, std::size_t window) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % window != 0) bytes += tokenizer.token_bytes(ids[i], /*skip_special=*/false).size();
  }
  return bytes;
}

Json describe(const TextScore& score) {
  Json steps = Json::array();
  for (const StepScore& step : score.steps) {
    steps.push_back({{"step", steps.size() + 1}, {"positions", step.positions}, {"agreement", step.agreement()},
        {"accept_probability", step.accept_probability()}, {"unusable", step.unusable}});
  }
  return {{"tokens", score.tokens}, {"windows", score.windows}, {"predicted", score.predicted},
      {"perplexity", score.perplexity()}, {"nats", score.nats}, {"top1", score.accuracy()},
      {"steps", std::move(steps)}};
}

Json describe(const RowFigures& figures, double perplexity) {
  return {{"rows", figures.rows}, {"kl_mean", figures.kl_mean}, {"kl_99", figures.kl_99}, {"kl_max", figures.kl_max},
      {"top1_agreement", figures.agreement}, {"max_logit_difference", figures.logit_difference},
      {"reference_perplexity", figures.reference_perplexity},
      {"perplexity_ratio", perplexity / figures.reference_perplexity}};
}

void print_text(const Json& d) {
  const auto line = [](const char* key, const std::string& value) {
    write_out(fmt::format("{:<16} {}\n", key, value));
  };
  const auto number = [](const Json& value) { return value.get<double>(); };
  line("model", d["model"].get<std::string>());
  line("lane", d["lane"].get<std::string>());
  line("tokens", fmt::format("{}, {} of them predicted, in windows of {}", d["tokens"].dump(), d["predicted"].dump(),
                     d["window"].dump()));
  line("perplexity", fmt::format("{:.5f}", number(d["perplexity"])));
  if (!d["bits_per_byte"].is_null()) line("bits per byte", fmt::format("{:.5f}", number(d["bits_per_byte"])));
  line("top-1", fmt::format("{:.2f} %", 100 * number(d["top1"])));
  for (const Json& step : d["steps"]) {
    line(fmt::format("draft step {}", step["step"].dump()).c_str(),
        fmt::format("greedy agreement {:.2f} %, mean accept probability {:.4f}", 100 * number(step["agreement"]),
            number(step["accept_probability"])));
  }
  if (d.contains("against")) {
    const Json& a = d["against"];
    line("against", fmt::format("{} ({})", a["file"].get<std::string>(), a["lane"].get<std::string>()));
    line("KL", fmt::format("mean {:.4g}, 99 % below {:.4g}, max {:.4g} nats over {} rows", number(a["kl_mean"]),
                   number(a["kl_99"]), number(a["kl_max"]), a["rows"].dump()));
    line("same top-1", fmt::format("{:.3f} %", 100 * number(a["top1_agreement"])));
    line("logits", fmt::format("differ by {:.4g} at most", number(a["max_logit_difference"])));
    line("its perplexity", fmt::format("{:.5f}, this one is {:.6f} times that", number(a["reference_perplexity"]),
                               number(a["perplexity_ratio"])));
  }
  if (!d["out"].is_null()) line("written", d["out"].get<std::string>());
}

}  // namespace

int eval_text(const TextOptions& options) {
  const Source source = read_source(options);
  std::optional<ReferenceLogits> reference;
  if (!options.against.empty()) reference.emplace(options.against);
  const auto open = open_model(options.model, options.json);
  Report report;
  const TextModel text(*open, report);
  say_report(report, options.json);
  const std::vector<TokenId> ids = source.text.empty() ? source.ids : text.tokenizer().encode(source.text);
  if (ids.size() < 2) {
    fail(ErrorCode::usage, "{}: expected at least 2 tokens, since the first predicts the second, found {}",
        source.text.empty() ? "--ids" : "--text", ids.size());
  }
  const ModelInfo& info = open->model().info();
  const int window = choose_window(options, reference ? &*reference : nullptr, info.context);
  if (reference) reference->expect(ids, info.vocab);

  std::optional<LogitsWriter> writer;
  RowComparison comparison;
  watch_interrupts();
  ScoreOptions score_options = {
      .window = window, .depth = options.depth, .chunk = options.chunk, .cancel = &interrupted()};
  score_options.on_row = [&](std::size_t token, const LogRow& row) {
    if (!options.out.empty() && !writer) writer.emplace(options.out, ids, info.vocab, window, open->ops->describe());
    if (writer) writer->add(row.logits);
    if (!reference) return;
    const bool scored = token + 1 < ids.size() && (token + 1) % static_cast<std::size_t>(window) != 0;
    comparison.add(reference->row(token), row, scored ? std::optional(ids[token + 1]) : std::nullopt);
  };
  const TextScore score = score_text(open->model(), ids, score_options);
  if (score.cancelled) fail(ErrorCode::cancelled, "interrupted");
  if (!score.problem.empty()) text.explain(score.problem);
  if (writer) writer->finish();
  for (const StepScore& step : score.steps) {
    if (step.unusable > 0)
      say(fmt::format(
          "warning: the head's logits were not finite at {} of {} positions\n", step.unusable, step.positions));
  }

  Json document = {{"model", open->checkpoint.folder().string()}, {"lane", open->ops->describe()},
      {"text", options.text.empty() ? Json() : Json(options.text)}, {"window", window}};
  document.update(describe(score));
  document["bits_per_byte"] = nullptr;
  if (text.has_tokenizer()) {
    const std::size_t bytes = predicted_bytes(text.tokenizer(), ids, static_cast<std::size_t>(window));
    document["predicted_bytes"] = bytes;
    if (bytes > 0) document["bits_per_byte"] = score.nats / std::log(2.0) / static_cast<double>(bytes);
  }
  document["out"] = options.out.empty() ? Json() : Json(options.out);
  if (reference) {
    document["against"] = {{"file", options.against}, {"lane", reference->lane()}};
    document["against"].update(describe(comparison.figures(), score.perplexity()));
  }
  if (options.json) {
    write_json(document);
  } else {
    print_text(document);
  }
  return 0;
}

}  // namespace foresay::cli
