#include "decode/accept.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "base/error.h"
#include "decode/chi_square.h"
#include "decode/choice_tree.h"
#include "decode/sample/processors.h"
#include "decode/sample/shape.h"

namespace foresay {
namespace {

using Ids = std::vector<TokenId>;
using Joint = std::map<Ids, double>;  // probability of each token sequence
using Rule = std::function<Verdict(
    std::span<const TokenId>, std::span<const Distribution>, std::span<const Distribution>, std::uint32_t, Chance&)>;

/// A model made of dice: logits that depend on the whole prefix, through the chain with that prefix as history.
class DiceModel {
 public:
  DiceModel(int vocab, SamplingOptions options, unsigned seed)
      : options_(std::move(options)), vocab_(vocab), random_(seed) {}

  [[nodiscard]] const SamplingOptions& options() const { return options_; }

  /// The distribution behind `prefix`, given how the coin of its position fell.
  const Distribution& next(const Ids& prefix, bool xtc = false) {
    const auto [at, is_new] = rows_.try_emplace({prefix, xtc});
    if (is_new) {
      std::vector<float> logits = logits_behind(prefix);
      process(logits, {prefix, {}}, options_, {});
      at->second = shape(std::move(logits), options_, xtc);
    }
    return at->second;
  }

  /// The same with the coin thrown by `chance`.
  const Distribution& next(const Ids& prefix, Chance& chance) {
    const auto index = static_cast<std::uint32_t>(prefix.size());
    return next(prefix, options_.xtc_probability > 0 && chance.happens(options_.xtc_probability, index, Purpose::xtc));
  }

  /// One row per position of the block and one behind it.
  std::vector<Distribution> rows(Ids prefix, std::span<const TokenId> block, Chance& chance) {
    std::vector<Distribution> rows = {next(prefix, chance)};
    for (const TokenId id : block) {
      prefix.push_back(id);
      rows.push_back(next(prefix, chance));
    }
    return rows;
  }

 private:
  const std::vector<float>& logits_behind(const Ids& prefix) {
    const auto [at, is_new] = logits_.try_emplace(prefix, static_cast<std::size_t>(vocab_));
    std::normal_distribution<float> normal(0, 1.5f);
    if (is_new) std::ranges::generate(at->second, [&] { return normal(random_); });
    return at->second;
  }

  SamplingOptions options_;
  int vocab_;
  std::mt19937 random_;
  std::map<Ids, std::vector<float>> logits_;
  std::map<std::pair<Ids, bool>, Distribution> rows_;
};

Ids followed_by(Ids ids, TokenId next) {
  ids.push_back(next);
  return ids;
}

/// Adds `probability` to every continuation of `ids` to `length` tokens, spread as the target spreads it.
void complete(DiceModel& target, const Ids& ids, std::size_t length, double probability, Joint& joint) {
  if (ids.size() == length) {
    joint[ids] += probability;
    return;
  }
  const double heads = target.options().xtc_probability;
  for (const bool xtc : {false, true}) {
    const double side = probability * (xtc ? heads : 1 - heads);
    if (side == 0) continue;
    const Distribution d = target.next(ids, xtc);
    for (std::size_t i = 0; i < d.ids().size(); ++i) {
      complete(target, followed_by(ids, d.ids()[i]), length, side * d.p()[i], joint);
    }
  }
}

double total_variation(const Joint& a, const Joint& b) {
  double sum = 0;
  const auto of = [](const Joint& joint, const Ids& ids) {
    const auto at = joint.find(ids);
    return at == joint.end() ? 0.0 : at->second;
  };
  for (const auto& [ids, probability] : a) sum += std::abs(probability - of(b, ids));
  for (const auto& [ids, probability] : b) sum += a.contains(ids) ? 0 : probability;
  return sum / 2;
}

/// Emits at least `length` tokens by rounds of `depth` drafts and cuts the rest off.
Ids speculate(DiceModel& target, DiceModel& drafter, int depth, std::size_t length, int rounds, const Rule& rule,
    Chance& chance) {
  Ids emitted;
  while (emitted.size() < length && rounds-- > 0) {
    const auto index = static_cast<std::uint32_t>(emitted.size());
    Ids draft, context = emitted;
    std::vector<Distribution> q;
    for (int i = 0; i < depth; ++i) {
      q.push_back(drafter.next(context, chance));
      draft.push_back(chance.draw(q.back(), index + static_cast<std::uint32_t>(i), Purpose::draft));
      context.push_back(draft.back());
    }
    const auto verdict = rule(draft, q, target.rows(emitted, draft, chance), index, chance);
    emitted.insert(emitted.end(), draft.begin(), draft.begin() + verdict.accepted);
    emitted.push_back(verdict.next);
  }
  if (emitted.size() > length) emitted.resize(length);
  return emitted;
}

/// Total variation between what one round of `rule` emits (completed by the target) and the target itself, over the
/// joint distribution of the first depth + 1 tokens, every outcome weighed exactly.
double distance_from_target(DiceModel& target, DiceModel& drafter, int depth, const Rule& rule) {
  const auto length = static_cast<std::size_t>(depth) + 1;
  Joint wanted, found;
  complete(target, {}, length, 1, wanted);
  ChoiceTree tree;
  tree.for_each_outcome([&] { return speculate(target, drafter, depth, length, 1, rule, tree); },
      [&](const Ids& emitted, double probability) { complete(target, emitted, length, probability, found); });
  return total_variation(wanted, found);
}

const std::vector<SamplingOptions> kSettings = {
    {.temperature = 1},
    {.temperature = 0.3},
    {.temperature = 1.7},
    {.temperature = 1, .top_k = 2},
    {.temperature = 0.7, .top_p = 0.7},
    {.temperature = 1.7, .top_k = 3, .top_p = 0.8},
    {.temperature = 1.2, .min_p = 0.3},
    {.temperature = 0},
    {.temperature = 1.1, .xtc_probability = 0.4, .xtc_threshold = 0.2},
    {.temperature = 0.9,
        .top_k = 3,
        .top_p = 0.95,
        .min_p = 0.02,
        .xtc_probability = 0.3,
        .xtc_threshold = 0.25,
        .repetition_penalty = 1.5,
        .presence_penalty = 0.3,
        .frequency_penalty = 0.4,
        .logit_bias = {{1, 0.5f}, {2, -0.3f}},
        .bad_words = {{0, 1}},
        .order = {SamplingStep::temperature, SamplingStep::xtc, SamplingStep::top_k, SamplingStep::min_p,
            SamplingStep::top_p}},
    {.temperature = 0, .repetition_penalty = 2, .frequency_penalty = 0.7, .bad_words = {{2, 1}, {0}}},
};

TEST(AcceptRatio, EmitsExactlyTheTargetsJointDistribution) {
  for (const int vocab : {3, 4}) {
    for (int depth = 0; depth <= 4; ++depth) {
      for (std::size_t setting = 0; setting < kSettings.size(); ++setting) {
        for (unsigned seed = 0; seed < 2; ++seed) {
          DiceModel target(vocab, kSettings[setting], 100 + seed), drafter(vocab, kSettings[setting], 200 + seed);
          EXPECT_LT(distance_from_target(target, drafter, depth, accept_ratio), 1e-12)
              << "vocab " << vocab << " depth " << depth << " setting " << setting << " seed " << seed;
        }
      }
    }
  }
}

TEST(AcceptRatio, IsExactWhateverTheDrafterSamples) {
  // Draft and target need not share their transforms, and the drafter may be the target itself or deterministic.
  for (std::size_t setting = 0; setting < kSettings.size(); ++setting) {
    for (const SamplingOptions& of_drafter : {kSettings[0], kSettings[3], kSettings[7]}) {
      DiceModel target(4, kSettings[setting], 5), drafter(4, of_drafter, 6), twin(4, of_drafter, 5);
      EXPECT_LT(distance_from_target(target, drafter, 3, accept_ratio), 1e-12) << setting;
      EXPECT_LT(distance_from_target(target, twin, 3, accept_ratio), 1e-12) << setting;
    }
  }
}

TEST(AcceptRatio, RoundsFollowEachOtherExactly) {
  for (const SamplingOptions& options : {kSettings[0], kSettings[5], kSettings[9]}) {
    DiceModel target(3, options, 31), drafter(3, options, 32);
    Joint wanted, found;
    complete(target, {}, 3, 1, wanted);
    // A discarded draft token and the one that the next round draws at its position share a key. The tree takes them as
    // independent, as they may be: nothing emitted before depends on the discarded one. (The next test has the real
    // keys.)
    struct FreshKeys : ChoiceTree {
      TokenId draw(const Distribution& d, std::uint32_t, Purpose purpose) override {
        return ChoiceTree::draw(d, ++calls, purpose);
      }
      bool happens(double probability, std::uint32_t index, Purpose purpose) override {
        // The coin of a position is one, whoever looks; the next round sees it again.
        return ChoiceTree::happens(probability, purpose == Purpose::xtc ? index : ++calls, purpose);
      }
      std::uint32_t calls = 0;
    } tree;
    tree.for_each_outcome([&] { return speculate(target, drafter, 2, 3, 3, accept_ratio, tree); },
        [&](const Ids& emitted, double probability) { complete(target, emitted, 3, probability, found); });
    EXPECT_LT(total_variation(wanted, found), 1e-12);
  }
}

TEST(AcceptRatio, RoundsUnderKeyedNoiseFitTheTargetsJointDistribution) {
  DiceModel target(2, kSettings[0], 51), drafter(2, kSettings[0], 52);
  Joint wanted;
  complete(target, {}, 3, 1, wanted);
  const auto code = [](const Ids& ids) { return 4 * ids[0] + 2 * ids[1] + ids[2]; };
  std::vector<TokenId> codes;
  std::vector<double> p;
  for (const auto& [ids, probability] : wanted) {
    codes.push_back(code(ids));
    p.push_back(probability);
  }
  std::vector<int> counts(8);
  for (std::uint64_t seed = 0; seed < 100'000; ++seed) {
    KeyedChance chance{KeyedNoise(seed)};
    ++counts[static_cast<std::size_t>(code(speculate(target, drafter, 2, 3, 3, accept_ratio, chance)))];
  }
  expect_fits(counts, {codes, p});
}

TEST(AcceptRatio, TheEnumerationCatchesWrongRules) {
  const Rule without_residual = [](auto draft, auto q, auto p, std::uint32_t index, Chance& chance) {
    for (std::size_t i = 0; i < draft.size(); ++i) {
      const auto at = index + static_cast<std::uint32_t>(i);
      const double ratio = p[i].probability(draft[i]) / q[i].probability(draft[i]);
      if (!chance.happens(std::min(1.0, ratio), at, Purpose::accept)) {
        return Verdict{static_cast<int>(i), chance.draw(p[i], at, Purpose::residual)};
      }
    }
    const auto at = index + static_cast<std::uint32_t>(draft.size());
    return Verdict{static_cast<int>(draft.size()), chance.draw(p.back(), at, Purpose::residual)};
  };
  const Rule always_accept = [](auto draft, auto, auto p, std::uint32_t index, Chance& chance) {
    const auto at = index + static_cast<std::uint32_t>(draft.size());
    return Verdict{static_cast<int>(draft.size()), chance.draw(p.back(), at, Purpose::residual)};
  };
  const Rule flattened = [](auto draft, auto q, auto p, std::uint32_t index, Chance& chance) {  // case B14
    std::vector<Distribution> hot(p.begin(), p.end());
    for (auto& row : hot) {
      std::vector<double> flat = row.p();
      double total = 0;
      for (double& x : flat) total += x = std::pow(x, 0.3);  // the target's temperature 0.3 undone
      for (double& x : flat) x /= total;
      row = Distribution(row.ids(), std::move(flat));
    }
    return accept_ratio(draft, q, hot, index, chance);
  };
  DiceModel target(4, kSettings[1], 41), drafter(4, kSettings[1], 42);
  for (const int depth : {1, 3}) {
    EXPECT_GT(distance_from_target(target, drafter, depth, without_residual), 1e-3);
    EXPECT_GT(distance_from_target(target, drafter, depth, always_accept), 1e-3);
    EXPECT_GT(distance_from_target(target, drafter, depth, flattened), 1e-3);
    EXPECT_LT(distance_from_target(target, drafter, depth, accept_ratio), 1e-12);
  }
}

TEST(AcceptRatio, ATokenOutsideTheDraftersSupportGivesWayToADrawFromTheTarget) {
  const Distribution p{{0, 1, 2}, {0.5, 0.3, 0.2}}, q{{0, 1}, {0.9, 0.1}};
  Joint found;
  ChoiceTree tree;
  tree.for_each_outcome(
      [&] { return accept_ratio(std::array<TokenId, 1>{2}, std::array{q}, std::array{p, p}, 0, tree); },
      [&](const Verdict& verdict, double probability) {
        EXPECT_EQ(verdict.accepted, 0);
        found[{verdict.next}] += probability;
      });
  EXPECT_LT(total_variation(found, {{{0}, 0.5}, {{1}, 0.3}, {{2}, 0.2}}), 1e-15);
}

TEST(AcceptRatio, ATokenThatTheTargetCannotEmitIsAlwaysRejected) {
  const Distribution p{{0, 1}, {0.5, 0.5}}, q{{1, 2}, {0.5, 0.5}};
  KeyedChance chance(KeyedNoise(3));
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const auto verdict = accept_ratio(std::array<TokenId, 1>{2}, std::array{q}, std::array{p, p}, i, chance);
    ASSERT_EQ(verdict.accepted, 0);
    ASSERT_EQ(verdict.next, 0) << "the residual of these is id 0 alone";
  }
}

TEST(AcceptRatio, GreedyKeepsTheMatchingPrefixAndCorrectsTheFirstMiss) {
  const auto one = [](TokenId id) { return Distribution{{id}, {1.0}}; };
  const std::vector<Distribution> p = {one(7), one(8), one(9)};
  KeyedChance chance(KeyedNoise(1));
  const auto miss = accept_ratio(std::array<TokenId, 2>{7, 3}, std::array{one(7), one(3)}, p, 0, chance);
  EXPECT_EQ(miss.accepted, 1);
  EXPECT_EQ(miss.next, 8);
  const auto hit = accept_ratio(std::array<TokenId, 2>{7, 8}, std::array{one(7), one(8)}, p, 0, chance);
  EXPECT_EQ(hit.accepted, 2);
  EXPECT_EQ(hit.next, 9);
}

TEST(Accept, RowCountsThatDisagreeAreAnError) {
  const Distribution d{{0}, {1.0}};
  KeyedChance chance(KeyedNoise(1));
  const std::array<TokenId, 1> draft = {0};
  const std::vector<Distribution> none, one = {d}, two = {d, d};
  for (const auto& act : std::vector<std::function<Verdict()>>{
           [&] { return accept_ratio(draft, one, one, 0, chance); },
           [&] { return accept_ratio(draft, none, two, 0, chance); },
           [&] { return accept_ratio({}, none, none, 0, chance); },
           [&] { return accept_coupled(draft, one, 0, chance); },
           [&] { return accept_coupled({}, two, 0, chance); },
       }) {
    try {
      (void)act();
      FAIL() << "did not throw";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::internal);
    }
  }
}

const std::vector<float> kTargetLogits = {2.0f, 1.4f, 0.3f, 0.9f, 0.1f, 1.1f, -0.1f, 0.2f};
const std::vector<float> kDrafterLogits = {1.2f, 1.9f, 0.6f, 0.2f, -0.1f, 0.8f, -0.4f, -0.9f};

/// Rounds of depth 3 with fixed p and q: counts of the token at the first position, of the second where the round
/// reached it, and of survivors at the first.
void check_fit(const SamplingOptions& options) {
  const auto p = shape(kTargetLogits, options), q = shape(kDrafterLogits, options);
  const std::vector<Distribution> p_rows(4, p), q_rows(3, q);
  KeyedChance chance(KeyedNoise(13));
  constexpr int kRounds = 200'000;
  std::vector<int> first(8), second(8);
  int accepted = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto index = static_cast<std::uint32_t>(4 * round);
    std::array<TokenId, 3> draft;
    for (std::uint32_t i = 0; i < 3; ++i) draft[i] = chance.draw(q, index + i, Purpose::draft);
    const auto verdict = accept_ratio(draft, q_rows, p_rows, index, chance);
    ++first[static_cast<std::size_t>(verdict.accepted > 0 ? draft[0] : verdict.next)];
    if (verdict.accepted > 0) {
      ++accepted;
      ++second[static_cast<std::size_t>(verdict.accepted > 1 ? draft[1] : verdict.next)];
    }
  }
  expect_fits(first, p);
  expect_fits(second, p);
  double overlap = 0;  // what ratio acceptance should reach; acceptance by equality reaches far less (case B13)
  for (const TokenId id : p.ids()) overlap += std::min(p.probability(id), q.probability(id));
  EXPECT_NEAR(static_cast<double>(accepted) / kRounds, overlap, 0.005);
}

TEST(AcceptRatio, EmittedTokensFitTheTarget) {
  check_fit({.temperature = 1});
}  // case B13

// Case B14: the ratio once used temperature 1 whatever was asked.
TEST(AcceptRatio, EmittedTokensFitTheTargetUnderTemperatureAndTruncation) {
  for (const double temperature : {0.3, 1.7}) {
    SCOPED_TRACE(temperature);
    check_fit({.temperature = temperature});
    check_fit({.temperature = temperature, .top_k = 3});
    check_fit({.temperature = temperature, .top_p = 0.8});
    check_fit({.temperature = temperature, .top_k = 3, .top_p = 0.8});
  }
}

TEST(AcceptCoupled, DrawsFitTheTarget) {
  const auto p = shape(kTargetLogits, {.temperature = 0.8}), q = shape(kDrafterLogits, {.temperature = 0.8});
  KeyedChance chance(KeyedNoise(14));
  std::vector<int> counts(8);
  int accepted = 0, equal_by_luck = 0;
  constexpr int kRounds = 200'000;
  for (std::uint32_t index = 0; index < kRounds; ++index) {
    const std::array<TokenId, 1> draft = {chance.draw(q, index, Purpose::draw)};
    const auto verdict = accept_coupled(draft, std::array{p, p}, index, chance);
    ++counts[static_cast<std::size_t>(verdict.accepted > 0 ? draft[0] : verdict.next)];
    accepted += verdict.accepted;
    equal_by_luck += chance.draw(q, index, Purpose::draft) == chance.draw(p, index, Purpose::draw) ? 1 : 0;
  }
  expect_fits(counts, p);
  EXPECT_GT(accepted, 1.5 * equal_by_luck) << "sharing noise is what makes equality a good rule";
}

TEST(AcceptCoupled, IdsAreThoseOfDepthZeroWhateverIsDrafted) {
  constexpr std::size_t kLength = 24;
  constexpr int kVocab = 5;
  enum class Drafter { liar, oracle, random };
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const SamplingOptions& options = kSettings[seed % kSettings.size()];
    DiceModel target(kVocab, options, static_cast<unsigned>(seed));
    KeyedChance chance(KeyedNoise(seed, 2));
    Ids plain;
    while (plain.size() < kLength + 8) {
      const auto index = static_cast<std::uint32_t>(plain.size());
      plain.push_back(accept_coupled({}, std::array{target.next(plain, chance)}, index, chance).next);
    }
    std::mt19937 random(static_cast<unsigned>(seed));
    for (const Drafter drafter : {Drafter::liar, Drafter::oracle, Drafter::random}) {
      for (int depth = 0; depth <= 4; ++depth) {
        Ids emitted;
        std::size_t rounds = 0;
        for (; emitted.size() < kLength; ++rounds) {
          Ids draft;
          for (int i = 0; i < depth; ++i) {
            const TokenId truth = plain[emitted.size() + static_cast<std::size_t>(i)];
            const auto roll = static_cast<TokenId>(random() % kVocab);
            draft.push_back(drafter == Drafter::oracle ? truth
                            : drafter == Drafter::liar ? (truth + 1) % kVocab
                                                       : roll);
          }
          const auto index = static_cast<std::uint32_t>(emitted.size());
          const auto verdict = accept_coupled(draft, target.rows(emitted, draft, chance), index, chance);
          emitted.insert(emitted.end(), draft.begin(), draft.begin() + verdict.accepted);
          emitted.push_back(verdict.next);
        }
        ASSERT_EQ(Ids(emitted.begin(), emitted.begin() + kLength), Ids(plain.begin(), plain.begin() + kLength))
            << "seed " << seed << " depth " << depth;
        const auto per_round = static_cast<std::size_t>(depth) + 1;
        const std::size_t fewest = (kLength + per_round - 1) / per_round;
        const bool is_best = drafter == Drafter::oracle, is_worst = drafter == Drafter::liar;
        EXPECT_TRUE(is_best ? rounds == fewest : is_worst ? rounds == kLength : rounds >= fewest) << rounds;
      }
    }
  }
}

}  // namespace
}  // namespace foresay
