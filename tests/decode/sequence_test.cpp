#include "decode/sequence.h"

#include <gtest/gtest.h>

#include <vector>

#include "lossless/subject.h"

namespace foresay {
namespace {

const Model& model() {
  return subject("tiny").model();
}

Sequence make(DecodeOptions options, Ids prompt = {1, 2, 3}) {
  return {model(), std::move(prompt), std::move(options)};
}

TEST(Sequence, EmitAppendsInOrderAndShowsEveryToken) {
  Sequence sequence = make({});
  Ids shown;
  sequence.on_token = [&](TokenId id) {
    shown.push_back(id);
    return false;
  };
  EXPECT_EQ(sequence.emit(Ids{7, 8, 9}), 3);
  EXPECT_EQ(sequence.emit(Ids{10}), 1);
  EXPECT_EQ(sequence.emit(Ids{}), 0);
  EXPECT_EQ(sequence.tokens, (Ids{1, 2, 3, 7, 8, 9, 10}));
  EXPECT_EQ(shown, (Ids{7, 8, 9, 10}));
  EXPECT_EQ(sequence.generated(), 4);
  EXPECT_EQ(sequence.stats.generated, 4);
  EXPECT_EQ(sequence.finish, Finish::running);
}

TEST(Sequence, EmitEndsAtAStopIdAndKeepsIt) {
  DecodeOptions options;
  options.stop_ids = {99, 8};
  Sequence sequence = make(options);
  EXPECT_EQ(sequence.emit(Ids{7, 8, 9}), 2);
  EXPECT_EQ(sequence.tokens, (Ids{1, 2, 3, 7, 8}));
  EXPECT_EQ(sequence.finish, Finish::stop);
  EXPECT_EQ(sequence.emit(Ids{10}), 0);
  EXPECT_EQ(sequence.generated(), 2);
}

TEST(Sequence, StopIdsOfThePromptDoNotCount) {
  DecodeOptions options;
  options.stop_ids = {3};
  Sequence sequence = make(options);
  EXPECT_EQ(sequence.emit(Ids{7}), 1);
  EXPECT_EQ(sequence.finish, Finish::running);
}

TEST(Sequence, EmitEndsWhereTheCallerStops) {
  Sequence sequence = make({});
  sequence.on_token = [](TokenId id) { return id == 7; };
  EXPECT_EQ(sequence.emit(Ids{6, 7, 8}), 2);
  EXPECT_EQ(sequence.finish, Finish::stop);
}

TEST(Sequence, EmitEndsAtMaxTokens) {
  DecodeOptions options;
  options.max_tokens = 2;
  Sequence sequence = make(options);
  EXPECT_EQ(sequence.remaining(), 2);
  EXPECT_EQ(sequence.emit(Ids{7, 8, 9}), 2);
  EXPECT_EQ(sequence.remaining(), 0);
  EXPECT_EQ(sequence.finish, Finish::length);
}

TEST(Sequence, AStopIdAsTheLastTokenIsAStop) {
  DecodeOptions options;
  options.max_tokens = 2;
  options.stop_ids = {8};
  Sequence sequence = make(options);
  EXPECT_EQ(sequence.emit(Ids{7, 8}), 2);
  EXPECT_EQ(sequence.finish, Finish::stop);
}

TEST(Sequence, EmitEndsAtTheContext) {
  const int context = model().info().context;
  DecodeOptions options;
  options.max_tokens = 100;
  Sequence sequence = make(options, Ids(static_cast<std::size_t>(context - 2), 1));
  EXPECT_EQ(sequence.remaining(), 2);
  EXPECT_EQ(sequence.emit(Ids{7, 8, 9}), 2);
  EXPECT_EQ(static_cast<int>(sequence.tokens.size()), context);
  EXPECT_EQ(sequence.finish, Finish::length);
}

TEST(Sequence, SeedIsTheOneGivenOrAFreshOne) {
  DecodeOptions options;
  options.sampling.seed = 17;
  EXPECT_EQ(make(options).seed, 17u);
  EXPECT_NE(make({}).seed, make({}).seed);
}

TEST(Sequence, DraftsShareTheTargetsNoiseUnlessAcceptanceIsByRatio) {
  EXPECT_EQ(draft_purpose({}), Purpose::draw);  // greedy
  EXPECT_EQ(draft_purpose({.temperature = 1, .seed = 1}), Purpose::draw);
  EXPECT_EQ(draft_purpose({.temperature = 1}), Purpose::draft);
  EXPECT_EQ(draft_purpose({.temperature = 1, .seed = 1, .acceptance = Acceptance::ratio}), Purpose::draft);
  EXPECT_EQ(draft_purpose({.temperature = 1, .acceptance = Acceptance::coupled}), Purpose::draw);
}

}  // namespace
}  // namespace foresay
