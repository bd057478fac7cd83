// foresay bench decode: the loop that `generate` runs, with its parts timed.
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/bench/benches.h"
#include "cli/bench/reading.h"
#include "cli/bench/subject.h"
#include "cli/bench/synthetic.h"
#include "cli/bench/timed_model.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "cli/sampling_options.h"
#include "decode/draft/make_mtp_drafter.h"
#include "decode/prefill.h"
#include "decode/round.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWarmUp = 8;      // rounds before the clock starts
constexpr int kProbeEvery = 6;  // rounds between two passes over one row, which are not part of the decode time

struct Options {
  SubjectOptions subject;
  SamplingArguments sampling;
  std::string rates;
  int depth = 3, tokens = 128, context = 32, chunk = 512;
  bool profile = false;
};

/// What the rounds of a run took.
struct Measured {
  std::vector<double> one_row_ms;
  double round_ms = 0;
  long rounds = 0, tokens = 0;
  TimedModel::Times parts;
  std::vector<long> drafted, accepted;
  Profile operations;
};

class Run {
 public:
  Run(const Options& options, const Subject& subject)
      : options_(options), subject_(subject), model_(subject.model()), decode_(decode_options()) {
    const std::uint64_t seed = decode_.sampling.seed.value_or(0);  // speed repeats when the noise does
    std::unique_ptr<Chance> chance;
    if (options.depth > 0) {
      if (!subject.open().has_head()) {
        fail(ErrorCode::usage, "--depth: expected 0 without a head ({}), found {}", subject.open().loaded.mtp_reason,
            options.depth);
      }
      mtp_ = make_mtp_drafter(model_);
      drafter_ = mtp_.get();
      if (!options.rates.empty()) {
        auto synthetic = std::make_unique<SyntheticChance>(parse_rates(options.rates, options.depth), KeyedNoise(seed));
        synthetic_.emplace(*mtp_, *synthetic);
        drafter_ = &*synthetic_;
        chance = std::move(synthetic);
      }
    }
    if (!chance) chance = std::make_unique<KeyedChance>(KeyedNoise(seed));
    sequence_.emplace(model_, subject.tokens(options.context), decode_, std::move(chance));
  }

  Measured measure() {
    prefill(model_, drafter_, *sequence_, options_.chunk);
    for (int i = 0; i < kWarmUp; ++i) advance();
    Measured m;
    (void)one_row_ms();
    model_.reset();
    const Stats before = sequence_->stats;
    while (sequence_->stats.generated - before.generated < options_.tokens) {
      if (m.rounds++ % kProbeEvery == 0) m.one_row_ms.push_back(one_row_ms());
      if (options_.profile) model_.ops().set_profile(&m.operations);
      const auto start = std::chrono::steady_clock::now();
      advance();
      m.round_ms += milliseconds_since(start);
      model_.ops().set_profile(nullptr);
    }
    m.parts = model_.times();
    m.tokens = sequence_->stats.generated - before.generated;
    const auto since = [](std::vector<long> now, const std::vector<long>& then) {
      for (std::size_t i = 0; i < then.size(); ++i) now[i] -= then[i];
      return now;
    };
    m.drafted = since(sequence_->stats.drafted, before.drafted);
    m.accepted = since(sequence_->stats.accepted, before.accepted);
    return m;
  }

 private:
  DecodeOptions decode_options() {
    DecodeOptions decode;
    decode.sampling = sampling_for(options_.sampling, subject_.text());
    decode.depth = options_.depth;
    decode.max_tokens = options_.tokens + (kWarmUp + 2) * (options_.depth + 1);  // no block is cut short by the end
    const int context = subject_.model().info().context;
    if (options_.context + decode.max_tokens > context) {
      fail(ErrorCode::usage, "--context: {} tokens and an answer of {} exceed this checkpoint's context of {}",
          options_.context, decode.max_tokens, context);
    }
    return decode;
  }

  /// By the model itself: the clock of TimedModel is for rounds.
  double one_row_ms() { return pass_ms(subject_.model(), *sequence_->caches, std::span(sequence_->tokens).last(1)); }

  void advance() {
    Sequence* const one[] = {&*sequence_};
    round(model_, drafter_, one);
    if (sequence_->finish == Finish::error) subject_.text().explain(sequence_->problem);
  }

  const Options& options_;
  const Subject& subject_;
  TimedModel model_;
  DecodeOptions decode_;
  std::unique_ptr<Drafter> mtp_;
  std::optional<SyntheticDrafter> synthetic_;
  Drafter* drafter_ = nullptr;
  std::optional<Sequence> sequence_;
};

Json result(const Options& options, const Subject& subject, const Measured& m) {
  const auto rounds = static_cast<double>(m.rounds);
  const double one_row = median(m.one_row_ms), pass = m.parts.pass_ms / rounds;
  Json line = subject.line("decode");
  line["depth"] = options.depth;
  line["context"] = options.context;
  line["tokens"] = m.tokens;
  const SamplingOptions& sampling = options.sampling.numbers;
  line["temperature"] = sampling.temperature;
  line["top_k"] = sampling.top_k;
  line["top_p"] = sampling.top_p;
  line["tok_s"] = rounded(static_cast<double>(m.tokens) * 1e3 / m.round_ms);
  if (options.depth > 0) {
    line["acceptance"] = options.rates.empty() ? "own" : "synthetic";
    line["accepted"] = Json::array();
    for (const long accepted : m.accepted) line["accepted"].push_back(rounded(static_cast<double>(accepted) / rounds));
  }
  line["tokens_per_pass"] = rounded(static_cast<double>(m.tokens) / rounds);
  line["ms_per_round"] = rounded(m.round_ms / rounds);
  line["ms_per_pass"] = rounded(pass);
  line["one_row_ms"] = rounded(one_row);
  line["pass_ratio"] = rounded(pass / one_row);
  if (m.parts.draft_steps > 0) {
    const double step = m.parts.draft_ms / static_cast<double>(m.parts.draft_steps);
    line["ms_per_draft_step"] = rounded(step);
    line["draft_ratio"] = rounded(step / one_row);
  }
  // What is neither pass nor draft step: shaping, drawing and acceptance, and the little that moves caches.
  line["sampling_share"] = rounded(std::max(0.0, 1 - (m.parts.pass_ms + m.parts.draft_ms) / m.round_ms));
  line["gbps"] = rounded(subject.trunk_bytes() / (one_row * 1e6));
  return line;
}

/// A line per operation, the dearest first, then one for what is none: sampling, drafts, bookkeeping.
void write_profile(const Subject& subject, const Measured& m) {
  const auto rounds = static_cast<double>(m.rounds);
  std::vector<std::pair<std::string_view, Profile::Entry>> entries(
      m.operations.entries().begin(), m.operations.entries().end());
  std::ranges::sort(entries, std::greater{}, [](const auto& entry) { return entry.second.ms; });
  double rest = m.round_ms;
  const auto write = [&](std::string_view operation, double calls, double ms) {
    Json line = subject.line("profile");
    line["operation"] = operation;
    line["calls_per_round"] = rounded(calls / rounds);
    line["ms_per_round"] = rounded(ms / rounds);
    line["share"] = rounded(ms / m.round_ms);
    write_json(line);
  };
  for (const auto& [operation, entry] : entries) {
    write(operation, static_cast<double>(entry.calls), entry.ms);
    rest -= entry.ms;
  }
  write("other", rounds, rest);
}

int run(const Options& options) {
  check_sampling(options.sampling, {});
  if (!options.rates.empty()) (void)parse_rates(options.rates, options.depth);
  const Subject subject(options.subject);
  Run run(options, subject);
  const Measured measured = run.measure();
  if (options.profile) write_profile(subject, measured);
  write_json(result(options, subject, measured));
  return 0;
}

}  // namespace

std::function<int()> add_bench_decode(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_subject_options(app, options->subject);
  app.add_option("--depth", options->depth, "Tokens drafted per pass; 0 is plain decoding")
      ->check(whole_number(0, 8))
      ->capture_default_str();
  app.add_option("--synthetic-acceptance", options->rates,
         "Let drafts survive at these rates, whatever they are: the share of blocks by draft position, 0.85,0.72,0.60")
      ->check(not_empty());
  app.add_option("--tokens", options->tokens, "Tokens to generate while the clock runs")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--context", options->context, "Prompt tokens read before")
      ->check(whole_number(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--prefill-chunk", options->chunk, "Prompt rows per pass; 0 is all at once")
      ->check(whole_number(0, 1 << 20))
      ->capture_default_str();
  app.add_flag("--profile", options->profile, "Also print the time of each operation, a line each");
  add_sampling_options(app, options->sampling);
  app.footer(
      "Prints one line: tok_s, acceptance, the cost of a pass, of a draft step and of the rest (sampling_share), and "
      "one_row_ms,\na pass over one row in between. With --synthetic-acceptance what is generated means nothing; the "
      "work is what it is.\n\nExample:\n  foresay bench decode --shape qwen3_5-0.8b --bits 4 --depth 3 "
      "--synthetic-acceptance 0.85,0.72,0.60");
  return [options] { return run(*options); };
}

}  // namespace foresay::cli
