// The checks in which every id must be that of plain decoding: greedy, coupled, together.
#include <algorithm>

#include "base/error.h"
#include "decode/batch.h"
#include "decode/lossless/runs.h"

namespace foresay {
namespace {

constexpr std::size_t kMostTogether = 8;  // every sequence has caches of its own

/// Samplers of different kinds; every step of the chain is in one of them. `bias` are ids worth moving.
std::vector<SamplingOptions> samplers(std::span<const TokenId> bias) {
  std::vector<SamplingOptions> all = {
      {.temperature = 1.3},
      {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.02},
      {.temperature = 0.9, .repetition_penalty = 1.2, .presence_penalty = 0.3, .frequency_penalty = 0.2},
      {.temperature = 1.0, .top_k = 30, .xtc_probability = 0.5, .xtc_threshold = 0.1},
      {.temperature = 0.8, .top_k = 20},
      {.temperature = 0.8, .top_p = 0.9},
      {.temperature = 0.8, .min_p = 0.05},
      {.temperature = 1.0, .top_p = 0.9, .min_p = 0.02},
  };
  for (const TokenId id : bias.first(std::min<std::size_t>(bias.size(), 4))) all.back().logit_bias[id] = -2;
  all.back().order = {
      SamplingStep::temperature, SamplingStep::top_k, SamplingStep::min_p, SamplingStep::top_p, SamplingStep::xtc};
  return all;
}

std::string list(const std::vector<int>& depths) {
  return fmt::format("depth{} {}", depths.size() == 1 ? "" : "s", fmt::join(depths, ", "));
}

}  // namespace

LosslessCheck check_greedy(const LosslessContext& context) {
  Comparison comparison(context, "greedy");
  const int chunk = context.options.odd_chunk;
  for (const LosslessPrompt& prompt : context.prompts) {
    const DecodeOptions plain = context.decode_options({}, 0);
    const Generation truth = context.run_plain(prompt, plain);
    for (const int depth : context.depths) {
      comparison.compare(
          prompt, plain, truth, context.run(prompt, context.decode_options({}, depth)), fmt::format("depth {}", depth));
    }
    const int deepest = context.depths.empty() ? 0 : context.depths.back();
    for (const int depth : deepest > 0 ? std::vector{0, deepest} : std::vector{0}) {
      comparison.compare(prompt, plain, truth, context.run(prompt, context.decode_options({}, depth), chunk),
          fmt::format("depth {}, the prompt in chunks of {}", depth, chunk));
    }
  }
  const std::string chunks = fmt::format("prompts in chunks of {}", chunk);
  return std::move(comparison)
      .finish(static_cast<int>(context.prompts.size()),
          context.depths.empty() ? chunks + "; nothing drafts" : list(context.depths) + "; " + chunks);
}

LosslessCheck check_coupled(const LosslessContext& context) {
  Comparison comparison(context, "coupled");
  auto all = samplers(context.prompts.front().ids);
  all.resize(std::min(all.size(), static_cast<std::size_t>(std::max(1, context.options.samplers))));
  std::size_t turn = 0;
  for (const SamplingOptions& sampler : all) {
    for (int seed = 0; seed < context.options.seeds; ++seed, ++turn) {
      const LosslessPrompt& prompt = context.prompts[turn % context.prompts.size()];
      SamplingOptions sampling = sampler;
      sampling.seed = turn + 1;
      const DecodeOptions plain = context.decode_options(sampling, 0);
      const Generation truth = context.run_plain(prompt, plain);
      // The deepest block and another depth in turn.
      std::vector<int> depths = {context.depths.back(), context.depths[turn % context.depths.size()]};
      if (depths[0] == depths[1]) depths.pop_back();
      for (const int depth : depths) {
        comparison.compare(prompt, plain, truth, context.run(prompt, context.decode_options(sampling, depth)),
            fmt::format("depth {}, sampler {}, seed {}", depth, &sampler - all.data() + 1, turn + 1));
      }
    }
  }
  return std::move(comparison)
      .finish(static_cast<int>(std::min(turn, context.prompts.size())),
          fmt::format("{} samplers, {} seeds each; {}", all.size(), context.options.seeds, list(context.depths)));
}

LosslessCheck check_together(const LosslessContext& context) {
  Comparison comparison(context, "together");
  // Sequences join one after another, so that prompts are read beside rounds, and end at different times.
  Drafter* const drafter = context.depths.empty() ? nullptr : context.drafter;
  Batch batch(context.model, drafter, context.options.odd_chunk);
  std::vector<Sequence*> sequences;
  std::vector<int> depths = context.depths;
  depths.insert(depths.begin(), 0);
  for (std::size_t i = 0; i < std::min(context.prompts.size(), kMostTogether); ++i) {
    SamplingOptions sampling;
    if (i % 2 == 1) sampling = {.temperature = 1.0, .top_k = 40, .seed = 1000 + i};
    DecodeOptions options = context.decode_options(sampling, depths[(depths.size() - 1 + i) % depths.size()]);
    sequences.push_back(&batch.join(std::make_unique<Sequence>(context.model, context.prompts[i].ids, options)));
    (void)batch.step();
    context.look_for_cancel();
  }
  while (batch.step()) context.look_for_cancel();

  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& sequence = *sequences[i];
    Generation together;
    together.ids.assign(sequence.tokens.begin() + sequence.prompt_length, sequence.tokens.end());
    together.finish = sequence.finish;
    together.problem = sequence.problem;
    together.stats = sequence.stats;
    const Generation alone = context.run_plain(context.prompts[i], sequence.options);
    comparison.compare(context.prompts[i], sequence.options, alone, together,
        fmt::format("depth {} beside {} others", sequence.options.depth, sequences.size() - 1));
  }
  return std::move(comparison).finish(static_cast<int>(sequences.size()), "one batch, " + list(depths));
}

}  // namespace foresay
