// foresay generate: one prompt, streamed; with --compare also decoded without the head, and the two checked against
// each other.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "checkpoint/finite.h"
#include "cli/common.h"
#include "cli/verb.h"
#include "decode/draft/mtp_drafter.h"
#include "decode/generate.h"
#include "text/chat_template.h"
#include "text/text_stream.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFewestDrafts = 32;         // below this many first drafts an acceptance rate says nothing
constexpr double kPoorAcceptance = 0.05;  // a healthy head keeps over half

struct Options {
  ModelOptions model;
  std::string prompt, prompt_ids, system, accept;
  bool chat = false, ignore_eos = false, compare = false, json = false;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stop;
  DecodeOptions decode;
  int chunk = 512;
};

std::string_view name_of(Finish finish) {
  switch (finish) {
    case Finish::running:
      return "running";
    case Finish::stop:
      return "stop";
    case Finish::length:
      return "length";
    case Finish::error:
      return "error";
    case Finish::cancelled:
      return "cancelled";
  }
  return "?";
}

/// The tokenizer, where one is needed or at hand. Ids alone need none, but its size still says where padding rows
/// begin.
std::optional<Tokenizer> open_tokenizer(const OpenModel& open, bool needed) {
  if (!needed && !std::filesystem::exists(open.folder / "tokenizer.json")) return std::nullopt;
  return Tokenizer::load(open.folder);
}

/// Every id that ends a turn: the config files' union, and the family's usual markers where the vocabulary has them.
std::vector<TokenId> stop_ids(const OpenModel& open, const std::optional<Tokenizer>& tokenizer) {
  std::set<TokenId> ids;
  for (const int id : declared_eos_ids(open.checkpoint)) ids.insert(id);
  if (tokenizer) {
    std::vector<std::string> names = {"<|im_end|>", "<|endoftext|>"};
    const nlohmann::json& config = open.checkpoint.tokenizer_config().json();
    const auto eos = config.find("eos_token");
    if (eos != config.end() && eos->is_string()) names.push_back(eos->get<std::string>());
    if (eos != config.end() && eos->is_object()) names.push_back(eos->value("content", ""));
    for (const std::string& name : names) {
      if (const auto id = tokenizer->id_of(name)) ids.insert(*id);
    }
  }
  return {ids.begin(), ids.end()};
}

std::vector<TokenId> read_prompt(
    const Options& options, const OpenModel& open, const std::optional<Tokenizer>& tokenizer) {
  if (!options.prompt_ids.empty()) return parse_ids("--prompt-ids", value_or_stdin(options.prompt_ids));
  std::string text = value_or_stdin(options.prompt);
  if (options.chat) {
    if (valid_utf8_prefix(text) != text.size()) {
      fail(ErrorCode::usage, "--prompt: not valid UTF-8 at byte {}", valid_utf8_prefix(text));
    }
    if (valid_utf8_prefix(options.system) != options.system.size()) {
      fail(ErrorCode::usage, "--system: not valid UTF-8 at byte {}", valid_utf8_prefix(options.system));
    }
    Json messages = Json::array();
    if (!options.system.empty()) messages.push_back({{"role", "system"}, {"content", options.system}});
    messages.push_back({{"role", "user"}, {"content", text}});
    text = ChatTemplate::load(open.folder).render(messages, {{"add_generation_prompt", true}});
  }
  return tokenizer->encode(text);
}

Json stats_json(const Stats& stats, const std::string& requested, const std::string& reason) {
  return {{"prompt_tok_s", stats.prompt_tok_s()}, {"decode_tok_s", stats.decode_tok_s()}, {"passes", stats.passes},
      {"depth", stats.depth}, {"drafted", stats.drafted}, {"accepted", stats.accepted},
      {"tokens_per_pass", stats.tokens_per_pass()},
      {"mtp", {{"requested", requested}, {"effective", stats.depth > 0 ? "on" : "off"}, {"reason", reason}}}};
}

std::string acceptance(const Stats& stats) {
  std::string out;
  for (std::size_t i = 0; i < stats.drafted.size(); ++i) {
    out += stats.drafted[i] == 0 ? fmt::format("{}-", i == 0 ? "" : " / ")
                                 : fmt::format("{}{:.2f}", i == 0 ? "" : " / ",
                                       static_cast<double>(stats.accepted[i]) / static_cast<double>(stats.drafted[i]));
  }
  return out.empty() ? "none drafted" : out;
}

std::string speed_line(const char* name, const Stats& stats) {
  return fmt::format(
      "{:<20} prompt {:.1f} tokens/s, decode {:.1f} tokens/s\n", name, stats.prompt_tok_s(), stats.decode_tok_s());
}

std::string draft_lines(const Stats& stats) {
  return fmt::format("{:<20} {} (share of blocks, by draft position)\n{:<20} {:.2f}\n", "acceptance", acceptance(stats),
      "tokens per pass", stats.tokens_per_pass());
}

/// One decoding run with its own text stream.
struct Run {
  Generation generation;
  std::string text;
};

class Generator {
 public:
  Generator(const Options& options, OpenModel& open)
      : options_(options),
        open_(open),
        model_(*open.loaded.model),
        tokenizer_(open_tokenizer(open, options.prompt_ids.empty() || !options.stop.empty())) {
    request_.prompt = read_prompt(options, open, tokenizer_);
    request_.options = options.decode;
    request_.prefill_chunk = options.chunk;
    request_.cancel = &interrupted();
    if (!options.ignore_eos) request_.options.stop_ids = stop_ids(open, tokenizer_);
    if (tokenizer_) request_.options.sampling.vocab_limit = tokenizer_->size();
  }

  [[nodiscard]] bool shows_text() const { return options_.prompt_ids.empty(); }
  [[nodiscard]] const std::vector<TokenId>& prompt() const { return request_.prompt; }

  /// Decodes; `show` receives text as it comes, or the ids when no text is shown.
  Run run(int depth, const std::function<void(std::string_view)>& show) {
    Run run;
    std::optional<TextStream> stream;
    if (tokenizer_) stream.emplace(*tokenizer_, options_.stop);
    const auto put = [&](const std::string& text) {
      run.text += text;
      if (shows_text() && show && !text.empty()) show(text);
    };
    request_.options.depth = depth;
    request_.on_token = [&](TokenId id) {
      if (!shows_text() && show) show(fmt::format("{}{}", run.generation.ids.empty() ? "" : ",", id));
      run.generation.ids.push_back(id);
      if (!stream) return false;
      put(stream->push(id));
      return stream->stopped();
    };
    std::optional<MtpDrafter> drafter;
    if (depth > 0 && model_.info().head_layers > 0) drafter.emplace(model_);
    run.generation = generate(model_, drafter ? &*drafter : nullptr, request_);
    if (stream) put(stream->finish());
    if (run.generation.finish == Finish::error) explain(run.generation.problem);
    return run;
  }

  /// Without the head only noise drawn afresh can differ, so a comparison pins the seed.
  void pin_seed(std::uint64_t seed) {
    request_.options.sampling.acceptance = request_.options.sampling.effective_acceptance();
    request_.options.sampling.seed = seed;
  }

  /// Must the ids equal those of plain decoding? Not under ratio acceptance: it keeps the distribution, not the draw.
  [[nodiscard]] bool must_be_identical() const {
    const SamplingOptions& sampling = request_.options.sampling;
    return sampling.greedy() || sampling.effective_acceptance() == Acceptance::coupled;
  }

 private:
  /// Non-finite logits: says so as damage of the checkpoint where a weight is to blame.
  [[noreturn]] void explain(const std::string& problem) const {
    if (const auto damage = find_non_finite(open_.checkpoint)) {
      fail(ErrorCode::checkpoint, "[generate] {}: {}; the checkpoint is damaged, fetch it again", problem, *damage);
    }
    fail(ErrorCode::internal, "[generate] {}", problem);
  }

  const Options& options_;
  OpenModel& open_;
  const Model& model_;
  std::optional<Tokenizer> tokenizer_;
  GenerateRequest request_;
};

void warn_of_poor_acceptance(const Stats& stats) {
  if (stats.drafted.empty() || stats.drafted[0] < kFewestDrafts) return;
  const double rate = static_cast<double>(stats.accepted[0]) / static_cast<double>(stats.drafted[0]);
  if (rate < kPoorAcceptance) {
    fmt::print(stderr,
        "warning: only {:.1f} % of first drafts were accepted; the head may be wired wrongly (see the contract in "
        "`foresay inspect`); "
        "the answer is not affected, the speed is\n",
        100 * rate);
  }
}

int run(Options& options) {
  if (options.prompt.empty() == options.prompt_ids.empty()) {
    fail(ErrorCode::usage, "give one of --prompt TEXT and --prompt-ids 1,2,3 (not empty); - reads stdin");
  }
  options.chat = options.chat || !options.system.empty();
  if (options.chat && options.prompt.empty())
    fail(ErrorCode::usage, "--chat and --system need --prompt: ids are taken as they are");
  options.decode.sampling.seed = options.seed;
  if (!options.accept.empty())
    options.decode.sampling.acceptance = options.accept == "ratio" ? Acceptance::ratio : Acceptance::coupled;
  validate(options.decode.sampling);

  OpenModel open(options.model);
  if (!options.json) print_report(open.report);
  const ModelInfo& info = open.loaded.model->info();
  if (info.head_layers > 0 && options.decode.depth > info.max_depth && !options.json) {
    fmt::print(stderr, "note: depth {} is capped to {}, what this head can do\n", options.decode.depth, info.max_depth);
  }
  watch_interrupts();
  Generator generator(options, open);
  const std::function<void(std::string_view)> stream =
      options.json ? nullptr : std::function<void(std::string_view)>(write_out);
  const Run drafted = generator.run(options.decode.depth, stream);
  const Generation& result = drafted.generation;
  if (!options.json) write_out("\n");

  std::optional<Run> plain;
  bool identical = false;
  if (options.compare && result.finish != Finish::cancelled) {
    generator.pin_seed(result.seed);
    plain = generator.run(0, nullptr);
    if (plain->generation.finish == Finish::cancelled) plain.reset();
    identical = plain && plain->generation.ids == result.ids;
  }

  const bool coupled =
      !options.decode.sampling.greedy() && options.decode.sampling.effective_acceptance() == Acceptance::coupled;
  if (options.json) {
    Json document = {{"model", open.folder.string()}, {"prompt_ids", generator.prompt()}, {"ids", result.ids},
        {"text", generator.shows_text() ? Json(drafted.text) : Json()}, {"finish_reason", name_of(result.finish)}};
    if (coupled) document["seed"] = result.seed;
    if (plain) document["identical"] = identical;
    document["stats"] = stats_json(result.stats, options.model.mtp,
        result.stats.depth > 0 || info.head_layers == 0 ? open.loaded.mtp_reason : "depth 0 was asked for");
    if (plain) document["ar_stats"] = stats_json(plain->generation.stats, "off", "comparison without the head");
    write_out(document.dump() + "\n");
  } else if (plain) {
    write_out("\n" + speed_line("AR", plain->generation.stats) +
              speed_line(fmt::format("MTP, depth {}", result.stats.depth).c_str(), result.stats) +
              draft_lines(result.stats));
    write_out(fmt::format("identical to AR: {}\n", identical ? "yes"
                                                   : generator.must_be_identical()
                                                       ? "NO"
                                                       : "no (ratio acceptance keeps the distribution, not the draw)"));
  } else {
    fmt::print(stderr, "\n{}{}", speed_line(result.stats.depth > 0 ? "MTP" : "AR", result.stats),
        result.stats.depth > 0 ? draft_lines(result.stats) : "");
  }
  warn_of_poor_acceptance(result.stats);
  if (interrupted()) return exit_code(ErrorCode::cancelled);
  if (plain && !identical && generator.must_be_identical()) {
    fail(ErrorCode::check_failed,
        "[generate] --compare: the ids with the head differ from plain decoding's; please report this");
  }
  return 0;
}

}  // namespace

std::function<int()> add_generate(CLI::App& app) {
  auto options = std::make_shared<Options>();
  SamplingOptions& sampling = options->decode.sampling;
  add_model_options(app, options->model);
  app.add_option("--prompt", options->prompt, "The prompt; - reads it from stdin");
  app.add_option("--prompt-ids", options->prompt_ids,
      "The prompt as token ids, 1,2,3; - reads them from stdin; needs no tokenizer");
  app.add_flag("--chat", options->chat, "Put the prompt through the checkpoint's chat template as the user's turn");
  app.add_option("--system", options->system, "System message; implies --chat");
  app.add_option("--max-tokens", options->decode.max_tokens, "Most tokens to generate")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--temperature", sampling.temperature, "0 is greedy")->capture_default_str();
  app.add_option("--top-k", sampling.top_k, "Keep the k likeliest tokens; 0 is off")->capture_default_str();
  app.add_option("--top-p", sampling.top_p, "Keep the likeliest tokens up to this mass; 1 is off")
      ->capture_default_str();
  app.add_option("--min-p", sampling.min_p, "Drop tokens below this share of the likeliest; 0 is off")
      ->capture_default_str();
  app.add_option("--seed", options->seed, "Seed of the noise; makes acceptance coupled unless --accept says otherwise");
  app.add_option("--accept", options->accept,
         "ratio: exact in distribution; coupled: the very ids of plain decoding with the same seed")
      ->check(CLI::IsMember({"ratio", "coupled"}));
  app.add_option("--depth", options->decode.depth, "Tokens drafted per pass; 0 is plain decoding")
      ->check(CLI::Range(0, 8))
      ->capture_default_str();
  app.add_option("--prefill-chunk", options->chunk, "Prompt rows per pass; 0 is all at once")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--stop", options->stop, "Stop before this text; may be given several times");
  app.add_flag("--ignore-eos", options->ignore_eos, "Go on past end-of-turn tokens");
  app.add_flag("--compare", options->compare,
      "Also decode without the head, print both speeds, and fail (7) where ids differ that must not");
  app.add_flag("--json", options->json, "Print one JSON document instead of streaming");
  app.footer(
      "Example:\n  foresay generate --prompt 'def main():' --max-tokens 64 --compare\n"
      "  foresay generate models/tiny-qwen3_5-4bit --chat --prompt 'Write a function' --temperature 0.8 --seed 7");
  return [options] { return run(*options); };
}

}  // namespace foresay::cli
