#include "decode/round.h"

#include <gtest/gtest.h>

#include <vector>

#include "decode/prefill.h"
#include "lossless/subject.h"

namespace foresay {
namespace {

const Model& model() {
  return subject("tiny_hybrid").model();
}

DecodeOptions at_depth(int depth, int max_tokens = 20) {
  DecodeOptions options;
  options.depth = depth;
  options.max_tokens = max_tokens;
  return options;
}

/// A drafter that cannot go beyond two.
class Shallow final : public DrafterWrapper {
 public:
  using DrafterWrapper::DrafterWrapper;
  [[nodiscard]] int max_depth() const override { return 2; }
};

TEST(RoundDepth, IsWhatWasAskedForWithinTheDrafter) {
  Liar liar;
  Shallow shallow(liar);
  for (int depth = 0; depth <= 8; ++depth) {
    Sequence sequence(model(), {1, 2, 3}, at_depth(depth));
    sequence.draft_state = liar.begin();
    EXPECT_EQ(round_depth(sequence, &liar), depth);
    EXPECT_EQ(round_depth(sequence, &shallow), std::min(depth, 2));
  }
}

TEST(RoundDepth, IsZeroWithoutADrafterOrItsState) {
  Liar liar;
  Sequence sequence(model(), {1, 2, 3}, at_depth(3));
  EXPECT_EQ(round_depth(sequence, &liar), 0);
  sequence.draft_state = liar.begin();
  EXPECT_EQ(round_depth(sequence, nullptr), 0);
}

TEST(RoundDepth, LeavesRoomForTheTokenAfterTheDraft) {
  Liar liar;
  Sequence sequence(model(), {1, 2, 3}, at_depth(8, 4));
  sequence.draft_state = liar.begin();
  for (const int expected : {3, 2, 1, 0}) {
    EXPECT_EQ(round_depth(sequence, &liar), expected);
    sequence.emit(Ids{7});
  }
  EXPECT_EQ(round_depth(sequence, &liar), 0);  // finished
}

TEST(RoundDepth, LeavesRoomInTheContext) {
  Liar liar;
  const int context = model().info().context;
  for (int left = 1; left <= 10; ++left) {
    Sequence sequence(model(), Ids(static_cast<std::size_t>(context - left), 1), at_depth(8, 100));
    sequence.draft_state = liar.begin();
    EXPECT_EQ(round_depth(sequence, &liar), std::min(8, left - 1));
  }
}

TEST(Round, RunsAllSequencesInOnePass) {
  ScriptedModel watched(model());
  Liar liar;
  Sequence a(watched, {1, 2, 3}, at_depth(3)), b(watched, {4}, at_depth(0)), c(watched, {5, 6}, at_depth(1));
  Sequence* const all[] = {&a, &b, &c};
  for (Sequence* sequence : all) prefill(watched, &liar, *sequence, 0);
  std::vector<Pass> passes;
  watched.before_pass = [&](const Pass& pass) { passes.push_back(pass); };
  std::vector<RoundTrace> traces;
  a.on_round = [&](const RoundTrace& trace) { traces.push_back(trace); };
  round(watched, &liar, all);

  ASSERT_EQ(passes.size(), 1u);
  const Pass& pass = passes.front();
  ASSERT_EQ(pass.slices.size(), 3u);
  EXPECT_EQ(pass.slices[0].count, 4);
  EXPECT_TRUE(pass.slices[0].provisional);
  EXPECT_EQ(pass.slices[1].count, 1);
  EXPECT_FALSE(pass.slices[1].provisional);  // no draft, so nothing to take back
  EXPECT_EQ(pass.slices[2].count, 2);
  EXPECT_EQ(pass.tokens.size(), 7u);
  EXPECT_EQ(pass.logit_rows, row_range(0, 7));
  EXPECT_EQ(pass.tokens[1], 5);
  for (const Sequence* sequence : all) {
    EXPECT_EQ(sequence->stats.passes, 1);
    EXPECT_EQ(sequence->caches->length(), static_cast<int>(sequence->tokens.size()) - 1);
  }
  ASSERT_EQ(traces.size(), 1u);
  EXPECT_EQ(traces[0].known, 4);
  EXPECT_EQ(traces[0].draft, (Ids{5, 5, 5}));
  EXPECT_EQ(traces[0].known + traces[0].accepted + 1, static_cast<int>(a.tokens.size()));
}

TEST(Round, PassesOverSequencesThatAreDone) {
  ScriptedModel watched(model());
  Liar liar;
  Sequence done(watched, {1, 2, 3}, at_depth(3, 1)), running(watched, {4}, at_depth(3));
  Sequence* const both[] = {&done, &running};
  for (Sequence* sequence : both) prefill(watched, &liar, *sequence, 0);
  ASSERT_EQ(done.finish, Finish::length);
  int passes = 0;
  watched.before_pass = [&](const Pass& pass) {
    ++passes;
    EXPECT_EQ(pass.slices.size(), 1u);
  };
  round(watched, &liar, both);
  EXPECT_EQ(done.generated(), 1);
  EXPECT_EQ(done.stats.passes, 0);
  EXPECT_GE(running.generated(), 2);
  running.finish = Finish::cancelled;
  round(watched, &liar, both);
  round(watched, &liar, {});
  EXPECT_EQ(passes, 1);
}

}  // namespace
}  // namespace foresay
