// Ratio acceptance on a trained model: the distribution of real runs against the target's exact one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "decode/draft/mtp_drafter.h"
#include "decode/evaluate.h"
#include "decode/golden_rounds.h"

namespace foresay {
namespace {

using Tokens = std::vector<TokenId>;

constexpr double kTemperature = 0.8;
constexpr int kTopK = 4;
constexpr std::size_t kJoint = 3;  ///< the first token comes from the prompt's pass, the others from rounds

/// softmax(logits / T) over the kTopK highest, written out apart from the product's sampler.
std::map<TokenId, double> target(std::span<const float> logits) {
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](TokenId id) { return double{logits[static_cast<std::size_t>(id)]}; };
  std::partial_sort(
      order.begin(), order.begin() + kTopK, order.end(), [&](TokenId a, TokenId b) { return logit(a) > logit(b); });
  std::map<TokenId, double> p;
  double sum = 0;
  for (int i = 0; i < kTopK; ++i)
    sum += std::exp((logit(order[static_cast<std::size_t>(i)]) - logit(order[0])) / kTemperature);
  for (int i = 0; i < kTopK; ++i) {
    const TokenId id = order[static_cast<std::size_t>(i)];
    p[id] = std::exp((logit(id) - logit(order[0])) / kTemperature) / sum;
  }
  return p;
}

/// Probability of every continuation of `prefix` to kJoint tokens.
void enumerate(const Model& model, const Tokens& prompt, const Tokens& prefix, double probability,
    std::map<Tokens, double>& joint) {
  if (prefix.size() == kJoint) {
    joint[prefix] = probability;
    return;
  }
  Tokens ids = prompt;
  ids.insert(ids.end(), prefix.begin(), prefix.end());
  const Evaluation rows = evaluate(model, ids, 0);
  const auto vocab = static_cast<std::size_t>(rows.vocab);
  for (const auto& [id, p] : target(std::span(rows.logits).last(vocab))) {
    Tokens longer = prefix;
    longer.push_back(id);
    enumerate(model, prompt, longer, probability * p, joint);
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
    enumerate(*model_, prompt_, {}, 1, joint_);
  }

  double misfit_of(int depth, const MakeChance& make_chance = nullptr) {
    MtpDrafter drafter(*model_);
    DecodeOptions options;
    options.depth = depth;
    options.max_tokens = static_cast<int>(kJoint) + 1;  // one more, so that the first block has its full depth
    options.sampling.temperature = kTemperature;
    options.sampling.top_k = kTopK;
    options.sampling.acceptance = Acceptance::ratio;
    std::map<Tokens, int> counts;
    for (int first = 0; first < kDraws; first += kTogether) {
      options.sampling.seed = static_cast<std::uint64_t>(first);
      const std::vector<Tokens> prompts(kTogether, prompt_);
      for (const Decoded& run : decode_together(*model_, &drafter, prompts, options, make_chance))
        ++counts[Tokens(run.ids.begin(), run.ids.begin() + kJoint)];
    }
    const double misfit_now = misfit(counts, joint_, kDraws);
    RecordProperty("misfit", std::to_string(misfit_now));
    RecordProperty("outcomes", static_cast<int>(counts.size()));
    return misfit_now;
  }

  const OpenedModel model_{bundled_model("tiny-qwen3_5")};
  Tokens prompt_;
  std::map<Tokens, double> joint_;
};

TEST_F(RatioRun, HasTheTargetsDistribution) {
  EXPECT_LT(misfit_of(2), 1);
}

TEST_F(RatioRun, WouldShowAnAcceptanceThatKeepsEveryDraft) {
  EXPECT_GT(misfit_of(2, [](std::uint64_t seed) { return std::make_unique<Always>(KeyedNoise(seed)); }), 1);
}

TEST_F(RatioRun, WouldShowAnAcceptanceThatKeepsNone) {
  EXPECT_GT(misfit_of(2, [](std::uint64_t seed) { return std::make_unique<Never>(KeyedNoise(seed)); }), 1);
}

}  // namespace
}  // namespace foresay
