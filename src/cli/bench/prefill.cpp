// foresay bench prefill: reading a prompt up to its first token.
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/bench/benches.h"
#include "cli/bench/subject.h"
#include "cli/bench/timed_model.h"
#include "cli/option_values.h"
#include "cli/output.h"
#include "decode/prefill.h"
#include "decode/sequence.h"

namespace foresay::cli {
namespace {

struct Options {
  SubjectOptions subject;
  int tokens = 512, chunk = 512, depth = 0, repeats = 3;
};

int run(const Options& options) {
  const Subject subject(options.subject);
  Drafter* const drafter = options.depth > 0 ? subject.text().drafter() : nullptr;
  if (options.depth > 0 && drafter == nullptr) {
    fail(ErrorCode::usage, "--depth: expected 0 without a head ({}), found {}", subject.open().loaded.mtp_reason,
        options.depth);
  }
  const std::vector<TokenId> prompt = subject.tokens(options.tokens);
  std::vector<double> taken;
  for (int i = 0; i <= options.repeats; ++i) {  // the first one brings the weights into memory
    DecodeOptions decode;
    decode.depth = options.depth;
    Sequence sequence(subject.model(), prompt, decode);
    const auto start = std::chrono::steady_clock::now();
    prefill(subject.model(), drafter, sequence, options.chunk);
    if (i > 0) taken.push_back(milliseconds_since(start));
    if (sequence.finish == Finish::error) subject.text().explain(sequence.problem);
  }
  const double ms = median(taken);
  auto line = subject.line("prefill");
  line["rows"] = options.tokens;
  line["chunk"] = options.chunk;
  line["depth"] = options.depth;
  line["repeats"] = options.repeats;
  line["ms"] = rounded(ms);
  line["tok_s"] = rounded(options.tokens * 1e3 / ms);
  write_json(line);
  return 0;
}

}  // namespace

std::function<int()> add_bench_prefill(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_subject_options(app, options->subject);
  app.add_option("--tokens", options->tokens, "Tokens of the prompt")
      ->check(whole_number(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--prefill-chunk", options->chunk, "Prompt rows per pass; 0 is all at once")
      ->check(whole_number(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--depth", options->depth, "Above 0 the head reads the prompt too, as decoding with it needs")
      ->check(whole_number(0, 8))
      ->capture_default_str();
  app.add_option("--repeats", options->repeats, "Runs; the median counts")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  app.footer("Example:\n  foresay bench prefill --shape qwen3_5-0.8b --bits 4 --tokens 512");
  return [options] { return run(*options); };
}

}  // namespace foresay::cli
