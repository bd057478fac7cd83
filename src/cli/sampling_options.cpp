#include "cli/sampling_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "cli/option_values.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMost = 1 << 30;  // tokens: far above any context

constexpr std::array<std::pair<std::string_view, SamplingStep>, 5> kSteps = {
    {{"top_p", SamplingStep::top_p}, {"min_p", SamplingStep::min_p}, {"xtc", SamplingStep::xtc},
        {"top_k", SamplingStep::top_k}, {"temperature", SamplingStep::temperature}}};

std::vector<SamplingStep> parse_order(std::string_view text) {
  if (text.empty()) return {kDefaultOrder.begin(), kDefaultOrder.end()};
  std::vector<SamplingStep> order;
  std::set<SamplingStep> distinct;
  std::size_t pieces = 0;
  for (std::size_t at = 0; at <= text.size(); ++pieces) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    for (const auto& [name, step] : kSteps) {
      if (text.substr(at, end - at) != name) continue;
      order.push_back(step);
      distinct.insert(step);
    }
    at = end + 1;
  }
  if (pieces != kSteps.size() || distinct.size() != kSteps.size()) {
    fail(ErrorCode::usage, "--sampler-order: {}",
        mismatch("top_p,min_p,xtc,top_k,temperature in any order, each once", text));
  }
  return order;
}

/// One ID=VALUE, or all pairs of a JSON object.
std::map<TokenId, float> parse_bias(const std::vector<std::string>& values) {
  std::map<TokenId, float> bias;
  const auto add = [&](std::string_view whole, std::string_view id_text, std::optional<double> value) {
    const auto id = parse_number<TokenId>(id_text);
    if (!id || *id < 0 || !value || !(std::abs(*value) <= std::numeric_limits<float>::max())) {
      fail(ErrorCode::usage, "--logit-bias: {}", mismatch("ID=NUMBER, or {\"ID\": NUMBER, ...}", whole));
    }
    if (!bias.emplace(*id, static_cast<float>(*value)).second) {
      fail(ErrorCode::usage, "--logit-bias: expected one number for each id, found two for {}", *id);
    }
  };
  for (const std::string& text : values) {
    if (!text.starts_with('{')) {
      const std::size_t equals = std::min(text.find('='), text.size());
      const std::string_view value = std::string_view(text).substr(std::min(equals + 1, text.size()));
      add(text, std::string_view(text).substr(0, equals), parse_number<double>(value));
      continue;
    }
    const Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) add(text, "", std::nullopt);
    for (const auto& [id, value] : object.items()) {
      add(text, id, value.is_number() ? std::optional(value.get<double>()) : std::nullopt);
    }
  }
  return bias;
}

/// A word is written at the start of a line and behind a blank, which are different tokens.
std::vector<std::vector<TokenId>> encode_bad_words(const std::vector<std::string>& words, const Tokenizer& tokenizer) {
  std::set<std::vector<TokenId>> sequences;
  for (const std::string& word : words) {
    sequences.insert(tokenizer.encode(word));
    sequences.insert(tokenizer.encode(" " + word));
  }
  return {sequences.begin(), sequences.end()};
}

void add_filters(CLI::App& app, SamplingOptions& numbers) {
  app.add_option("--temperature", numbers.temperature, "0 is greedy")
      ->check(number(">= 0", [](double x) { return x >= 0; }))
      ->capture_default_str();
  app.add_option("--top-k", numbers.top_k, "Keep the k likeliest tokens; 0 is off")
      ->check(whole_number(0, kMost))
      ->capture_default_str();
  app.add_option("--top-p", numbers.top_p, "Keep the likeliest tokens up to this mass; 1 is off")
      ->check(number("in (0, 1]", [](double x) { return x > 0 && x <= 1; }))
      ->capture_default_str();
  CLI::Option* const min_p =
      app.add_option("--min-p", numbers.min_p, "Drop tokens below this share of the likeliest; 0 is off")
          ->check(number("in [0, 1)", [](double x) { return x >= 0 && x < 1; }))
          ->capture_default_str();
  app.add_option("--min-tokens-to-keep", numbers.min_keep, "Likeliest tokens that --min-p never drops")
      ->check(whole_number(1, kMost))
      ->needs(min_p)
      ->capture_default_str();
  CLI::Option* const xtc = app.add_option("--xtc-probability", numbers.xtc_probability,
                                  "How often all likely tokens but the least likely of them are dropped; 0 is off")
                               ->check(number("in [0, 1]", [](double x) { return x >= 0 && x <= 1; }))
                               ->capture_default_str();
  app.add_option("--xtc-threshold", numbers.xtc_threshold, "The probability from which on xtc calls a token likely")
      ->check(number("in [0, 0.5]", [](double x) { return x >= 0 && x <= 0.5; }))
      ->needs(xtc)
      ->capture_default_str();
}

/// Penalties, each with the number of newest tokens that it looks at.
void add_penalties(CLI::App& app, SamplingOptions& numbers) {
  const auto add = [&](const std::string& name, double& value, const std::string& help, CLI::Validator range,
                       int& window) {
    CLI::Option* const penalty =
        app.add_option("--" + name + "-penalty", value, help)->check(std::move(range))->capture_default_str();
    app.add_option("--" + name + "-context-size", window, "Newest tokens that it looks at; 0 is all")
        ->check(whole_number(0, kMost))
        ->needs(penalty)
        ->capture_default_str();
  };
  const auto any = [](double) { return true; };
  add("repetition", numbers.repetition_penalty, "Divides positive logits of seen tokens, multiplies others; 1 is off",
      number("> 0", [](double x) { return x > 0; }), numbers.repetition_window);
  add("presence", numbers.presence_penalty, "Taken off the logits of seen tokens, once; 0 is off", number("", any),
      numbers.presence_window);
  add("frequency", numbers.frequency_penalty, "Taken off the logits of seen tokens, once per time; 0 is off",
      number("", any), numbers.frequency_window);
}

}  // namespace

void add_sampling_options(CLI::App& app, SamplingArguments& arguments) {
  add_filters(app, arguments.numbers);
  add_penalties(app, arguments.numbers);
  app.add_option("--logit-bias", arguments.logit_bias,
         "ID=VALUE, added to a token's logit; may be given several times, or as {\"ID\": VALUE, ...}")
      ->check(not_empty())
      ->allow_extra_args(false);
  app.add_option("--bad-word", arguments.bad_words, "Text that is never written; may be given several times")
      ->check(not_empty())
      ->allow_extra_args(false);
  app.add_option("--sampler-order", arguments.order,
         "The order of the filters; default: top_p,min_p,xtc,top_k,temperature, each exactly once")
      ->check(not_empty());
  app.add_option(
         "--seed", arguments.numbers.seed, "Seed of the noise; makes acceptance coupled unless --accept says otherwise")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()));
  app.add_option("--accept", arguments.accept,
         "ratio: exact in distribution; coupled: the very ids of plain decoding with the same seed")
      ->check(one_of({"ratio", "coupled"}));
}

void add_length_options(CLI::App& app, DecodeOptions& decode) {
  app.add_option("--max-tokens", decode.max_tokens, "Most tokens to generate")
      ->check(whole_number(1, kMost))
      ->capture_default_str();
  app.add_option("--min-tokens", decode.min_tokens, "Tokens before which the answer does not end by itself")
      ->check(whole_number(0, kMost))
      ->capture_default_str();
}

void add_drafting_options(CLI::App& app, DecodeOptions& decode) {
  app.add_option("--depth", decode.depth, "Tokens drafted per pass; 0 is plain decoding")
      ->check(whole_number(0, 8))
      ->capture_default_str();
  app.add_option("--draft-vocab", decode.draft_vocabulary,
         "Drafts come from the N lowest ids, special tokens and the ids of the context; 0 is all; default: as it pays")
      ->check(whole_number(0, kMost))
      ->type_name("N");
}

void check_sampling(const SamplingArguments& arguments, const DecodeOptions& lengths) {
  if (lengths.min_tokens > lengths.max_tokens) {
    fail(ErrorCode::usage, "--min-tokens: expected at most --max-tokens, which is {}, found {}", lengths.max_tokens,
        lengths.min_tokens);
  }
  for (const std::string& word : arguments.bad_words) expect_utf8("--bad-word", word);
  (void)parse_order(arguments.order);
  (void)parse_bias(arguments.logit_bias);
  validate(arguments.numbers);
}

SamplingOptions sampling_for(const SamplingArguments& arguments, const TextModel& model) {
  SamplingOptions sampling = arguments.numbers;
  if (!arguments.accept.empty()) {
    sampling.acceptance = arguments.accept == "ratio" ? Acceptance::ratio : Acceptance::coupled;
  }
  sampling.order = parse_order(arguments.order);
  sampling.logit_bias = parse_bias(arguments.logit_bias);
  sampling.vocab_limit = model.vocab_limit();
  if (!sampling.logit_bias.empty() && sampling.logit_bias.rbegin()->first >= sampling.vocab_limit) {
    fail(ErrorCode::usage, "--logit-bias: id {} is outside the vocabulary; expected 0 to {}",
        sampling.logit_bias.rbegin()->first, sampling.vocab_limit - 1);
  }
  if (!arguments.bad_words.empty()) sampling.bad_words = encode_bad_words(arguments.bad_words, model.tokenizer());
  if (sampling.xtc_probability > 0) {  // as mlx_lm.generate: a text that cannot break its lines or end is no text
    sampling.xtc_exempt = model.stop_ids();
    if (model.has_tokenizer()) {
      const std::vector<TokenId> line_end = model.tokenizer().encode("\n");
      sampling.xtc_exempt.insert(sampling.xtc_exempt.end(), line_end.begin(), line_end.end());
    }
  }
  validate(sampling);
  return sampling;
}

}  // namespace foresay::cli
