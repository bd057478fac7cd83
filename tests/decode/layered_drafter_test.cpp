// Drafts of heads with distinct layers against their definition: every row of every layer from scratch, whatever was
// drafted, accepted, forked or left out before. Every comparison is of identical rows and identical distributions.
#include "decode/draft/layered_drafter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "decode/draft/hidden_queue.h"
#include "decode/draft/make_mtp_drafter.h"
#include "decode/draft/mtp_drafter.h"
#include "decode/layered_by_definition.h"
#include "decode/prefill.h"
#include "decode/round.h"
#include "fixtures/drafters.h"
#include "fixtures/prefix_model.h"
#include "fixtures/scripted_model.h"

namespace foresay {
namespace {

constexpr int kLayers = PrefixModel::kDistinctLayers;

bool same(const Distribution& a, const Distribution& b) {
  return a.ids() == b.ids() && a.p() == b.p();
}

class Layered : public ::testing::TestWithParam<HeadScheme> {
 protected:
  [[nodiscard]] HeadScheme scheme() const { return GetParam(); }

  /// A sequence whose prompt was read in chunks, with its first token.
  [[nodiscard]] std::unique_ptr<Sequence> begin(
      Drafter& drafter, int length, int chunk, std::uint32_t seed, int draft_vocabulary = 0) const {
    std::mt19937 random(seed);
    Ids prompt(static_cast<std::size_t>(length));
    for (TokenId& id : prompt) id = random_id(random);
    auto sequence = std::make_unique<Sequence>(model_, prompt, options(seed, draft_vocabulary));
    prefill(model_, &drafter, *sequence, chunk);
    return sequence;
  }

  /// q has every id, so that equal distributions mean equal logits.
  static DecodeOptions options(std::uint32_t seed, int draft_vocabulary = 0) {
    DecodeOptions options;
    options.sampling = {.temperature = 1.0, .seed = seed};
    options.draft_vocabulary = draft_vocabulary;
    return options;
  }

  static TokenId random_id(std::mt19937& random) { return static_cast<TokenId>(random() % PrefixModel::kVocab); }

  /// The target keeps `accepted` drafts and puts another token behind them.
  void commit(Drafter& drafter, Sequence& sequence, const Ids& drafts, int accepted, std::mt19937& random) const {
    Pass pass;
    pass.tokens = {sequence.tokens.back()};
    pass.tokens.insert(pass.tokens.end(), drafts.begin(), drafts.begin() + accepted);
    pass.slices = {{0, accepted + 1, sequence.caches.get(), false}};
    TokenId next = random_id(random);
    if (accepted < static_cast<int>(drafts.size()) && next == drafts[static_cast<std::size_t>(accepted)])
      next = wrong_for(next);
    sequence.tokens.insert(sequence.tokens.end(), drafts.begin(), drafts.begin() + accepted);
    sequence.tokens.push_back(next);
    drafter.observe(sequence, model_.head_input(model_.forward(pass)));
  }

  /// Every row of every cache is certain and what it is by definition; none lags behind further than it may.
  [[nodiscard]] ::testing::AssertionResult holds_certain_rows(const Sequence& sequence, int slack) const {
    const int rows = static_cast<int>(sequence.tokens.size()) - 1;
    const auto expected = rows_by_definition(scheme(), sequence.tokens, rows);
    const HeadCaches& caches = LayeredDrafter::caches(*sequence.draft_state);
    for (int i = 0; i < kLayers; ++i) {
      const auto& want = expected[static_cast<std::size_t>(i)];
      const auto found = PrefixModel::head_rows(*caches[static_cast<std::size_t>(i)]);
      if (found.size() > want.size())
        return ::testing::AssertionFailure() << "layer " << i << " holds " << found.size() << " rows of " << rows;
      if (static_cast<int>(found.size()) < static_cast<int>(want.size()) - kMostWaiting * (i + 1) - slack)
        return ::testing::AssertionFailure() << "layer " << i << " has only " << found.size() << " rows of " << rows;
      for (std::size_t p = 0; p < found.size(); ++p) {
        if (found[p] != want[p]) return ::testing::AssertionFailure() << "layer " << i << ", row " << p << " differs";
      }
    }
    return ::testing::AssertionSuccess();
  }

  /// The block is what its definition says, drawn by the noise of its positions.
  [[nodiscard]] ::testing::AssertionResult is_by_definition(
      Sequence& sequence, const DraftBlock& block, Fault fault = Fault::none) const {
    const auto expected = q_by_definition(scheme(), sequence, block.tokens, always_, fault);
    if (block.q.size() != block.tokens.size()) return ::testing::AssertionFailure() << "as many q as tokens expected";
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (!same(block.q[i], expected[i])) return ::testing::AssertionFailure() << "draft " << i << " differs";
      const auto index = static_cast<std::uint32_t>(sequence.generated() + static_cast<int>(i));
      if (block.tokens[i] != sequence.chance->draw(expected[i], index, draft_purpose(sequence.options.sampling)))
        return ::testing::AssertionFailure() << "draft " << i << " was drawn otherwise";
    }
    return ::testing::AssertionSuccess();
  }

  PrefixModel model_{GetParam()};
  Ids always_;
};

DraftBlock propose(Drafter& drafter, Sequence& sequence, int depth) {
  Sequence* const one[] = {&sequence};
  return std::move(drafter.propose(one, std::vector<int>{depth}).front());
}

// T8 of the chained schedule: caches and drafts after any accepted counts and depths, at once, late or never.
TEST_P(Layered, DraftsAndCachesAreTheirDefinitionOverManyRounds) {
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    LayeredDrafter drafter(model_);
    const auto sequence =
        begin(drafter, 1 + static_cast<int>(random() % 40), 1 + static_cast<int>(random() % 20), seed);
    int at_depth[kLayers + 1] = {};
    int depth = 0;
    for (int round = 0; round < 200; ++round) {
      // Some depths last for long, so that layers that are not drafted from fall behind.
      if (random() % (seed % 2 == 0 ? 2 : 25) == 0) depth = static_cast<int>(random() % (kLayers + 1));
      const DraftBlock block = propose(drafter, *sequence, depth);
      ASSERT_EQ(static_cast<int>(block.tokens.size()), depth) << "round " << round;
      ASSERT_TRUE(is_by_definition(*sequence, block)) << "round " << round << ", depth " << depth;
      ASSERT_TRUE(holds_certain_rows(*sequence, 1 + kLayers)) << "round " << round;
      const HeadCaches& caches = LayeredDrafter::caches(*sequence->draft_state);
      for (int i = 0; i < depth; ++i) {
        const int rows = static_cast<int>(sequence->tokens.size()) - 1;
        ASSERT_EQ(caches[static_cast<std::size_t>(i)]->length(), std::max(0, rows - i)) << "layer " << i;
      }
      ++at_depth[depth];
      commit(drafter, *sequence, block.tokens, static_cast<int>(random() % (block.tokens.size() + 1)), random);
      ASSERT_TRUE(holds_certain_rows(*sequence, 0)) << "behind round " << round;
    }
    if (seed % 2 == 0) {
      EXPECT_GT(*std::ranges::min_element(at_depth), 20);
    }
  }
}

TEST_P(Layered, APromptInChunksIsAPromptAtOnce) {
  for (const int length : {1, 2, 3, 4, 5, 15, 16, 17, 18, 19, 20, 33, 40, 65, 130}) {
    for (const int chunk : {0, 1, 2, 3, 16, 17, 18, 40}) {
      for (int depth = 1; depth <= kLayers; ++depth) {
        SCOPED_TRACE(fmt::format("prompt of {}, chunk {}, depth {}", length, chunk, depth));
        LayeredDrafter drafter(model_);
        const auto sequence = begin(drafter, length, chunk, 3);
        ASSERT_TRUE(holds_certain_rows(*sequence, 0));
        const DraftBlock block = propose(drafter, *sequence, depth);
        ASSERT_EQ(static_cast<int>(block.tokens.size()), depth);
        ASSERT_TRUE(is_by_definition(*sequence, block));
        ASSERT_TRUE(holds_certain_rows(*sequence, 1));
      }
    }
  }
}

// What the tests above compare with shows every fault that a drafter could have.
TEST_P(Layered, TheDefinitionTellsFaultsApart) {
  LayeredDrafter drafter(model_);
  std::mt19937 random(5);
  const auto sequence = begin(drafter, 9, 0, 5);
  for (int round = 0; round < 20; ++round) {
    const DraftBlock block = propose(drafter, *sequence, kLayers);
    EXPECT_TRUE(is_by_definition(*sequence, block));
    for (const Fault fault :
        {Fault::other_source, Fault::token_behind, Fault::stale_row, Fault::missing_row, Fault::skipped_output}) {
      EXPECT_FALSE(is_by_definition(*sequence, block, fault)) << static_cast<int>(fault);
    }
    commit(drafter, *sequence, block.tokens, round % (kLayers + 1), random);
  }
}

// Sequences of different ages, depths and vocabularies share passes, sit rounds out, are forked, leave and are
// replaced; some rows of the head's logits cannot be drawn from.
TEST_P(Layered, SequencesThatShareRoundsDraftAsTheirDefinitionSays) {
  always_ = {13};
  ScriptedModel scripted(model_);
  std::mt19937 random(17);
  bool breaks = false;
  int broken = 0;
  scripted.on_draft_logits = [&](std::span<float> logits) {
    if (!breaks || random() % 3 != 0) return;
    logits[1] = std::numeric_limits<float>::quiet_NaN();
    ++broken;
  };
  LayeredDrafter drafter(scripted, {13, -1, PrefixModel::kVocab});
  std::uint32_t seed = 0;
  const auto fresh = [&] {
    const int lengths[] = {1, 2, 3, 17, 40, 9};
    ++seed;
    return begin(drafter, lengths[random() % 6], static_cast<int>(random() % 20), seed, random() % 3 == 0 ? 4 : 0);
  };
  std::vector<std::unique_ptr<Sequence>> sequences;
  for (int i = 0; i < 4; ++i) sequences.push_back(fresh());
  int forks = 0, cut_short = 0;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    breaks = random() % 4 == 0;
    std::vector<Sequence*> members;
    std::vector<int> depths;
    for (const auto& each : sequences) {
      if (random() % 5 == 0) continue;
      members.push_back(each.get());
      depths.push_back(static_cast<int>(random() % (kLayers + 1)));
    }
    broken = 0;
    const auto blocks = drafter.propose(members, depths);
    ASSERT_EQ(blocks.size(), members.size());
    int missing = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      ASSERT_TRUE(is_by_definition(*members[i], blocks[i])) << "member " << i;
      ASSERT_TRUE(holds_certain_rows(*members[i], 1 + kLayers)) << "member " << i;
      missing += static_cast<int>(blocks[i].tokens.size()) < depths[i] ? 1 : 0;
      const int most = static_cast<int>(blocks[i].tokens.size());
      commit(drafter, *members[i], blocks[i].tokens, static_cast<int>(random() % (static_cast<unsigned>(most) + 1)),
          random);
      ASSERT_TRUE(holds_certain_rows(*members[i], 0)) << "member " << i;
    }
    ASSERT_EQ(missing, broken);  // each row that cannot be drawn from ends the block of its own sequence
    cut_short += missing;
    if (random() % 8 == 0) {
      Sequence& from = *sequences[random() % sequences.size()];
      auto copy = std::make_unique<Sequence>(model_, Ids{1}, options(++seed, from.options.draft_vocabulary));
      copy->tokens = from.tokens;
      copy->fork_state(from, &drafter);
      sequences[random() % sequences.size()] = std::move(copy);
      ++forks;
    } else if (random() % 15 == 0) {
      sequences[random() % sequences.size()] = fresh();
    }
  }
  EXPECT_GT(forks, 10);
  EXPECT_GT(cut_short, 20);
}

// Depth d is d passes over all sequences, each with one row of logits per sequence; no pass at depth 0 until many rows
// wait.
TEST_P(Layered, ARoundIsAPassPerDepth) {
  ScriptedModel scripted(model_);
  std::vector<int> steps, logit_rows;
  scripted.before_draft = [&](const HeadPass& pass) {
    steps.push_back(pass.step);
    logit_rows.push_back(static_cast<int>(pass.logit_rows.size()));
  };
  LayeredDrafter drafter(scripted);
  std::mt19937 random(2);
  std::vector<std::unique_ptr<Sequence>> owned;
  std::vector<Sequence*> all;
  for (std::uint32_t i = 0; i < 3; ++i) {
    owned.push_back(begin(drafter, 5, 0, i));
    all.push_back(owned.back().get());
  }
  EXPECT_TRUE(steps.empty());
  const auto blocks = drafter.propose(all, std::vector<int>{3, 0, 2});
  EXPECT_EQ(steps, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(logit_rows, (std::vector<int>{2, 2, 1}));
  steps.clear();
  for (int round = 0; round < kMostWaiting - 5; ++round) {
    (void)propose(drafter, *all[1], 0);
    commit(drafter, *all[1], {}, 0, random);
  }
  EXPECT_TRUE(steps.empty());
  commit(drafter, *all[1], {}, 0, random);
  EXPECT_EQ(steps.size(), scheme() == HeadScheme::parallel ? 3u : 1u);
}

// The newest row is kept for the draft, however many waited with it.
TEST_P(Layered, ALongStretchWithoutDraftsCostsNoDraft) {
  for (int plain = 0; plain < 80; ++plain) {
    LayeredDrafter drafter(model_);
    std::mt19937 random(4);
    const auto sequence = begin(drafter, 3, 0, 4);
    for (int round = 0; round < plain; ++round) commit(drafter, *sequence, {}, 0, random);
    const DraftBlock block = propose(drafter, *sequence, kLayers);
    ASSERT_EQ(static_cast<int>(block.tokens.size()), kLayers) << plain;
    ASSERT_TRUE(is_by_definition(*sequence, block)) << plain;
  }
}

TEST_P(Layered, WithoutAHiddenStateThereIsNoDraft) {
  LayeredDrafter drafter(model_);
  Sequence sequence(model_, Ids{3}, options(1));
  sequence.draft_state = drafter.begin();
  EXPECT_TRUE(propose(drafter, sequence, kLayers).tokens.empty());
  std::mt19937 random(1);
  commit(drafter, sequence, {}, 0, random);
  const DraftBlock block = propose(drafter, sequence, kLayers);
  EXPECT_EQ(static_cast<int>(block.tokens.size()), kLayers);
  EXPECT_TRUE(is_by_definition(sequence, block));
  EXPECT_TRUE(propose(drafter, sequence, kLayers).tokens.empty()) << "nothing is known behind the block before";
}

TEST_P(Layered, DepthEndsWithTheLayers) {
  const auto drafter = make_mtp_drafter(model_);
  EXPECT_EQ(drafter->max_depth(), kLayers);
  const auto sequence = begin(*drafter, 4, 0, 1);
  EXPECT_EQ(round_depth(*sequence, drafter.get()), kLayers);  // of the default of 3
  sequence->options.depth = 8;
  EXPECT_EQ(round_depth(*sequence, drafter.get()), kLayers);
  EXPECT_EQ(static_cast<int>(propose(*drafter, *sequence, 8).tokens.size()), kLayers);
}

INSTANTIATE_TEST_SUITE_P(, Layered, ::testing::Values(HeadScheme::chained, HeadScheme::parallel),
    [](const auto& test) { return test.param == HeadScheme::chained ? "chained" : "parallel"; });

TEST(MakeMtpDrafter, ChoosesByTheScheme) {
  const PrefixModel reused, chained(HeadScheme::chained), parallel(HeadScheme::parallel);
  EXPECT_NE(dynamic_cast<MtpDrafter*>(make_mtp_drafter(reused).get()), nullptr);
  EXPECT_NE(dynamic_cast<LayeredDrafter*>(make_mtp_drafter(chained).get()), nullptr);
  EXPECT_NE(dynamic_cast<LayeredDrafter*>(make_mtp_drafter(parallel).get()), nullptr);
}

}  // namespace
}  // namespace foresay
