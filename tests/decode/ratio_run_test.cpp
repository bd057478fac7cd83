// Ratio acceptance on a trained model: the distribution of real runs against the target's exact one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "decode/chain_by_definition.h"
#include "decode/draft/mtp_drafter.h"
#include "decode/evaluate.h"
#include "decode/golden_rounds.h"

namespace foresay {
namespace {

using Tokens = std::vector<TokenId>;

constexpr std::size_t kJoint = 3;  ///< the first token comes from the prompt's pass, the others from rounds

SamplingOptions plain_sampling() {
  return {.temperature = 0.8, .top_k = 4};
}

/// Every transform. Few ids stay, so that the joint distribution of three tokens has cells that fill.
SamplingOptions every_transform() {
  return {.temperature = 0.9,
      .top_k = 4,
      .top_p = 0.97,
      .min_p = 0.01,
      .min_keep = 2,
      .xtc_probability = 0.5,
      .xtc_threshold = 0.1,
      .repetition_penalty = 0.7,  // below 1 and below 0 they draw seen ids in, so that leaving one out shows
      .presence_penalty = -2.5,
      .frequency_penalty = -1.0,
      .frequency_window = 3,
      .logit_bias = {{10, 1.0f}, {259, -2.0f}},
      .bad_words = {{10, 259}},
      .order = {
          SamplingStep::top_k, SamplingStep::temperature, SamplingStep::xtc, SamplingStep::min_p, SamplingStep::top_p}};
}

/// Probability of every continuation of `prefix` to kJoint tokens.
void enumerate(const Model& model, const SamplingOptions& sampling, const Tokens& prompt, const Tokens& prefix,
    double probability, std::map<Tokens, double>& joint) {
  if (prefix.size() == kJoint) {
    joint[prefix] += probability;
    return;
  }
  Tokens ids = prompt;
  ids.insert(ids.end(), prefix.begin(), prefix.end());
  const Evaluation rows = evaluate(model, ids, 0);
  const auto vocab = static_cast<std::size_t>(rows.vocab);
  std::map<TokenId, double> next;  // over both sides of xtc's coin
  for (const bool xtc : {false, true}) {
    const double side = xtc ? sampling.xtc_probability : 1 - sampling.xtc_probability;
    if (side == 0) continue;
    const Distribution d = chain_by_definition(std::span(rows.logits).last(vocab), ids, sampling, xtc);
    for (std::size_t i = 0; i < d.ids().size(); ++i) next[d.ids()[i]] += side * d.p()[i];
  }
  for (const auto& [id, p] : next) {
    Tokens longer = prefix;
    longer.push_back(id);
    enumerate(model, sampling, prompt, longer, probability * p, joint);
  }
}

/// Pearson's statistic over its critical value at 1 %: above 1 the counts do not fit. Outcomes that are expected fewer
/// than five times share a cell; an impossible outcome is infinitely far off.
double misfit(const std::map<Tokens, int>& counts, const std::map<Tokens, double>& joint, int draws) {
  double statistic = 0, rare_expected = 0;
  int cells = 0, rare = 0, seen = 0;
  const auto add = [&](double expected, int count) {
    statistic += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (const auto& [tokens, probability] : joint) {
    const auto found = counts.find(tokens);
    const int count = found == counts.end() ? 0 : found->second;
    seen += count;
    if (probability * draws >= 5) {
      add(probability * draws, count);
    } else {
      rare_expected += probability * draws;
      rare += count;
    }
  }
  if (seen != draws) return INFINITY;
  if (rare_expected > 0) add(rare_expected, rare);
  const double freedom = cells - 1, part = 2 / (9 * freedom);
  const double critical = freedom * std::pow(1 - part + 2.3263 * std::sqrt(part), 3);  // Wilson and Hilferty
  return statistic / critical;
}

/// Acceptance that is broken on purpose.
class Always final : public KeyedChance {
 public:
  using KeyedChance::KeyedChance;
  [[nodiscard]] bool happens(double /*probability*/, std::uint32_t /*index*/, Purpose /*purpose*/) override {
    return true;
  }
};
class Never final : public KeyedChance {
 public:
  using KeyedChance::KeyedChance;
  [[nodiscard]] bool happens(double /*probability*/, std::uint32_t /*index*/, Purpose /*purpose*/) override {
    return false;
  }
};

class RatioRun : public ::testing::Test {
 protected:
  static constexpr int kDraws = 1024, kTogether = 64;

  RatioRun() {
    const Tokens ids = acceptance_prompts().at(4);
    prompt_.assign(ids.begin(), ids.begin() + 4);  // few tokens: much is open
  }

  double misfit_of(int depth, const SamplingOptions& sampling, const MakeChance& make_chance = nullptr) {
    return misfit_between(sampling, sampling, depth, make_chance);
  }

  /// Runs with one sampler against the distribution of another.
  double misfit_between(const SamplingOptions& wanted, const SamplingOptions& sampling, int depth = 2,
      const MakeChance& make_chance = nullptr, int draft_vocabulary = -1) {
    std::map<Tokens, double> joint;
    enumerate(*model_, wanted, prompt_, {}, 1, joint);
    MtpDrafter drafter(*model_);
    DecodeOptions options;
    options.depth = depth;
    options.draft_vocabulary = draft_vocabulary;
    options.max_tokens = static_cast<int>(kJoint) + 1;  // one more, so that the first block has its full depth
    options.sampling = sampling;
    options.sampling.acceptance = Acceptance::ratio;
    std::map<Tokens, int> counts;
    for (int first = 0; first < kDraws; first += kTogether) {
      options.sampling.seed = static_cast<std::uint64_t>(first);
      const std::vector<Tokens> prompts(kTogether, prompt_);
      for (const Decoded& run : decode_together(*model_, &drafter, prompts, options, make_chance))
        ++counts[Tokens(run.ids.begin(), run.ids.begin() + kJoint)];
    }
    const double misfit_now = misfit(counts, joint, kDraws);
    RecordProperty("misfit", std::to_string(misfit_now));
    RecordProperty("outcomes", static_cast<int>(counts.size()));
    return misfit_now;
  }

  const OpenedModel model_{bundled_model("tiny-qwen3_5")};
  Tokens prompt_;
};

TEST_F(RatioRun, HasTheTargetsDistribution) {
  EXPECT_LT(misfit_of(2, plain_sampling()), 1);
}

TEST_F(RatioRun, HasTheTargetsDistributionWithEveryTransformOn) {
  EXPECT_LT(misfit_of(2, every_transform()), 1);
}

TEST_F(RatioRun, HasTheTargetsDistributionWhenDraftsComeFromAPartOfTheVocabulary) {
  for (const int low : {64, 1024}) {
    EXPECT_LT(misfit_between(plain_sampling(), plain_sampling(), 2, nullptr, low), 1) << low;
    EXPECT_LT(misfit_between(every_transform(), every_transform(), 2, nullptr, low), 1) << low;
  }
}

TEST_F(RatioRun, WouldShowATransformThatIsLeftOut) {
  for (const auto leave_out : std::initializer_list<void (*)(SamplingOptions&)>{
           [](SamplingOptions& sampling) { sampling.presence_penalty = 0; },
           [](SamplingOptions& sampling) { sampling.xtc_probability = 0; },
       }) {
    SamplingOptions without = every_transform();
    leave_out(without);
    EXPECT_GT(misfit_between(every_transform(), without), 1);
  }
}

TEST_F(RatioRun, WouldShowAnAcceptanceThatKeepsEveryDraft) {
  EXPECT_GT(
      misfit_of(2, plain_sampling(), [](std::uint64_t seed) { return std::make_unique<Always>(KeyedNoise(seed)); }), 1);
}

TEST_F(RatioRun, WouldShowAnAcceptanceThatKeepsNone) {
  EXPECT_GT(
      misfit_of(2, plain_sampling(), [](std::uint64_t seed) { return std::make_unique<Never>(KeyedNoise(seed)); }), 1);
}

}  // namespace
}  // namespace foresay
