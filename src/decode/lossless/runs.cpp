#include "decode/lossless/runs.h"

#include <algorithm>

#include "base/error.h"
#include "decode/lossless/tie.h"

namespace foresay {
namespace {

std::string id_at(const Generation& generation, std::size_t at) {
  return at < generation.ids.size() ? fmt::format("id {}", generation.ids[at]) : std::string("the end");
}

}  // namespace

DecodeOptions LosslessContext::decode_options(SamplingOptions sampling, int depth) const {
  DecodeOptions decode;
  decode.sampling = std::move(sampling);
  decode.sampling.vocab_limit = options.vocab_limit;
  decode.depth = depth;
  decode.max_tokens = options.max_tokens;
  decode.stop_ids = options.stop_ids;
  return decode;
}

void LosslessContext::look_for_cancel() const {
  if (options.cancel != nullptr && *options.cancel) fail(ErrorCode::cancelled, "interrupted");
}

void LosslessContext::fail_target(const std::string& problem) const {
  if (options.on_target_problem) options.on_target_problem(problem);
  fail(ErrorCode::internal, "[lossless] {}", problem);
}

Generation LosslessContext::run(const LosslessPrompt& prompt, const DecodeOptions& decode, int chunk) const {
  GenerateRequest request;
  request.prompt = prompt.ids;
  request.options = decode;
  request.prefill_chunk = chunk;
  request.cancel = options.cancel;
  Generation generation = generate(model, decode.depth > 0 ? drafter : nullptr, request);
  look_for_cancel();
  return generation;
}

Generation LosslessContext::run_plain(const LosslessPrompt& prompt, DecodeOptions decode) const {
  decode.depth = 0;
  Generation generation = run(prompt, decode);
  if (generation.finish == Finish::error) fail_target(generation.problem);
  return generation;
}

void Comparison::compare(const LosslessPrompt& prompt, const DecodeOptions& options, const Generation& plain,
    const Generation& other, const std::string& how) {
  for (std::size_t i = 0; i < other.stats.drafted.size(); ++i) {
    check_.accepted += other.stats.accepted[i];
    if (i == 0) check_.rejected += other.stats.drafted[0] - other.stats.accepted[0];
    if (i > 0)
      check_.rejected += std::min(other.stats.accepted[i - 1], other.stats.drafted[i]) - other.stats.accepted[i];
  }
  const auto [mine, theirs] = std::ranges::mismatch(plain.ids, other.ids);
  const auto at = static_cast<std::size_t>(mine - plain.ids.begin());
  check_.tokens += static_cast<long>(at);
  if (mine == plain.ids.end() && theirs == other.ids.end() && plain.finish == other.finish) return;

  double margin = 0;
  std::string scores;
  if (mine != plain.ids.end() && theirs != other.ids.end()) {
    margin = deciding_margin(context_.model, prompt.ids, options, std::span(plain.ids).first(at), *mine, *theirs,
        context_.options.tie_tolerance);
    if (context_.options.tie_tolerance > 0 && margin <= context_.options.tie_tolerance) {
      ++ties_;
      return;
    }
    scores = fmt::format("; their scores differ by {:.3g}", margin);
  }
  check_.passed = false;
  if (differing_++ > 0) return;
  check_.detail = fmt::format("prompt {}, {}, generated token {}: {} without drafts, {} here{}", prompt.name, how, at,
      id_at(plain, at), id_at(other, at), scores);
  if (other.finish == Finish::error) check_.detail += "; this run ended with: " + other.problem;
}

LosslessCheck Comparison::finish(int prompts, const std::string& done) && {
  check_.prompts = prompts;
  if (check_.passed) {
    check_.detail = done;
    if (!context_.depths.empty())
      check_.detail += fmt::format("; {} drafts accepted, {} rejected", check_.accepted, check_.rejected);
  }
  if (differing_ > 1) check_.detail += fmt::format("; {} more runs differ", differing_ - 1);
  if (ties_ > 0) {
    check_.detail +=
        fmt::format("; {} runs were compared up to a tie within {}", ties_, context_.options.tie_tolerance);
  }
  return std::move(check_);
}

}  // namespace foresay
