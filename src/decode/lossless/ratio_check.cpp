// The check of ratio acceptance: what real rounds emit against the target's own distribution.
//
// Rounds start from one state: prompt and first token, read once. The first token of such a round has the target's
// distribution; so has each further one, given those ahead of it, because a draft's fate does not depend on the noise
// of later positions. So the tokens behind each prefix are a histogram of their own, and all histograms make one test.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "decode/lossless/goodness_of_fit.h"
#include "decode/lossless/runs.h"
#include "decode/lossless/tie.h"
#include "decode/prefill.h"
#include "decode/round.h"

namespace foresay {
namespace {

constexpr double kSignificance = 1e-6;      // a right engine fails one checkpoint in a million
constexpr int kDepth = 3, kTogether = 50;   // rounds that share a pass
constexpr std::size_t kLongestPrompt = 24;  // few tokens: much is open
constexpr std::size_t kMostPrefixes = 16;   // each costs a pass over the prompt
constexpr int kFewestDraws = 40;            // behind a prefix; fewer tell nothing

using Prefix = std::vector<TokenId>;
using Histograms = std::map<Prefix, std::map<TokenId, int>>;

struct Outcome {
  GoodnessOfFit fit;
  long accepted = 0, rejected = 0, tokens = 0;
  std::string impossible;  ///< the first id that the target cannot emit
};

int draws_of(const std::map<TokenId, int>& histogram) {
  int draws = 0;
  for (const auto& [id, count] : histogram) draws += count;
  return draws;
}

/// Compares the prefixes that were seen most often.
void compare(const LosslessContext& context, const LosslessPrompt& prompt, const Prefix& start,
    const DecodeOptions& options, const Histograms& histograms, Outcome& outcome) {
  std::vector<const Histograms::value_type*> order;
  for (const auto& entry : histograms) {
    if (draws_of(entry.second) >= kFewestDraws) order.push_back(&entry);
  }
  std::ranges::stable_sort(
      order, [](const auto* a, const auto* b) { return draws_of(a->second) > draws_of(b->second); });
  if (order.size() > kMostPrefixes) order.resize(kMostPrefixes);
  for (const auto* entry : order) {
    const Distribution expected = plain_distribution(context.model, start, options, entry->first);
    for (const auto& [id, count] : entry->second) {
      if (expected.probability(id) > 0 || !outcome.impossible.empty()) continue;
      outcome.impossible = fmt::format(
          "prompt {}, {} tokens into a round at depth {}: id {} was emitted {} times, its "
          "probability is 0",
          prompt.name, entry->first.size(), options.depth, id, count);
    }
    outcome.fit.add(entry->second, expected);
    outcome.tokens += draws_of(entry->second);
  }
}

void run_rounds(const LosslessContext& context, const LosslessPrompt& prompt, DecodeOptions options, Outcome& outcome) {
  options.sampling.acceptance = Acceptance::ratio;
  options.sampling.seed = 0;
  options.stop_ids.clear();
  options.max_tokens = options.depth + 2;  // a round of full depth, and never the last token

  const auto first = prompt.ids.begin();
  Prefix start(first, first + static_cast<std::ptrdiff_t>(std::min(prompt.ids.size(), kLongestPrompt)));
  Sequence read(context.model, start, options);
  prefill(context.model, context.drafter, read, /*chunk=*/0);
  if (read.finish == Finish::error) context.fail_target(read.problem);
  start = read.tokens;

  Histograms histograms;
  for (int done = 0; done < context.options.ratio_rounds;) {
    context.look_for_cancel();
    std::vector<std::unique_ptr<Sequence>> sequences;
    std::vector<Sequence*> running;
    for (int i = 0; i < kTogether && done < context.options.ratio_rounds; ++i, ++done) {
      options.sampling.seed = static_cast<std::uint64_t>(done) + 1;
      sequences.push_back(std::make_unique<Sequence>(context.model, start, options));
      sequences.back()->fork_state(read, context.drafter);
      running.push_back(sequences.back().get());
    }
    round(context.model, context.drafter, running);
    for (const Sequence* sequence : running) {
      if (sequence->finish == Finish::error) context.fail_target(sequence->problem);
      const Prefix emitted(sequence->tokens.begin() + sequence->prompt_length, sequence->tokens.end());
      Prefix before;
      for (const TokenId id : emitted) {
        ++histograms[before][id];
        before.push_back(id);
      }
      const long drafted = sequence->stats.drafted.empty() ? 0 : sequence->stats.drafted[0];
      const long accepted = static_cast<long>(emitted.size()) - 1;
      outcome.accepted += accepted;
      if (drafted > 0 && accepted < options.depth) ++outcome.rejected;
    }
  }
  compare(context, prompt, start, options, histograms, outcome);
}

}  // namespace

LosslessCheck check_ratio(const LosslessContext& context) {
  Outcome outcome;
  const int prompts = std::min(context.options.ratio_prompts, static_cast<int>(context.prompts.size()));
  const auto deep = std::ranges::find_if(context.depths, [](int depth) { return depth >= kDepth; });
  const int depth = deep != context.depths.end() ? *deep : context.depths.back();
  for (int i = 0; i < prompts; ++i) {
    const LosslessPrompt& prompt = context.prompts[static_cast<std::size_t>(i)];
    for (const SamplingOptions& sampler : {SamplingOptions{.temperature = 1.0, .top_k = 12},
             SamplingOptions{.temperature = 0.8, .top_p = 0.95, .repetition_penalty = 1.1, .presence_penalty = 0.5}}) {
      run_rounds(context, prompt, context.decode_options(sampler, depth), outcome);
    }
  }
  const double p = outcome.fit.p_value();
  LosslessCheck check = {
      "ratio", p >= kSignificance, prompts, outcome.tokens, outcome.accepted, outcome.rejected, outcome.impossible};
  if (check.detail.empty()) {
    check.detail = fmt::format(
        "{} rounds at depth {} from each prompt: chi-square {:.1f}, {} degrees of freedom, p {:.2g} (fails below "
        "{:.0e}); {} drafts accepted, {} rejected",
        2 * context.options.ratio_rounds, depth, outcome.fit.statistic(), outcome.fit.freedom(), p, kSignificance,
        outcome.accepted, outcome.rejected);
  }
  // Where the head is always right, or never, only one side of acceptance was seen: no failure, but worth saying.
  if (outcome.accepted == 0 || outcome.rejected == 0) {
    check.detail += fmt::format("; nothing was {}", outcome.accepted == 0 ? "accepted" : "rejected");
  }
  return check;
}

}  // namespace foresay
