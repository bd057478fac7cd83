#include "decode/generate.h"

#include <gtest/gtest.h>

#include <numeric>

#include "lossless/subject.h"

namespace foresay {
namespace {

const Model& model() {
  return subject("tiny_hybrid").model();
}

GenerateRequest request_of(int depth, int max_tokens) {
  GenerateRequest request;
  request.prompt = {1, 2, 3, 4, 5};
  request.options.depth = depth;
  request.options.max_tokens = max_tokens;
  return request;
}

TEST(Generate, ShowsEveryTokenAndReturnsThem) {
  Ids shown;
  GenerateRequest request = request_of(3, 20);
  request.on_token = [&](TokenId id) {
    shown.push_back(id);
    return false;
  };
  HeadDrafter head(model());
  const Generation result = generate(model(), &head, request);
  EXPECT_EQ(result.ids.size(), 20u);
  EXPECT_EQ(shown, result.ids);
  EXPECT_EQ(result.finish, Finish::length);
  EXPECT_TRUE(result.problem.empty());
}

TEST(Generate, CountsPassesAndDrafts) {
  HeadDrafter head(model());
  for (const int depth : {1, 3, 8}) {
    const Stats stats = generate(model(), &head, request_of(depth, 30)).stats;
    EXPECT_EQ(stats.prompt_tokens, 5);
    EXPECT_EQ(stats.generated, 30);
    EXPECT_EQ(stats.depth, depth);
    ASSERT_EQ(stats.drafted.size(), static_cast<std::size_t>(depth));
    ASSERT_EQ(stats.accepted.size(), static_cast<std::size_t>(depth));
    for (std::size_t i = 1; i < stats.drafted.size(); ++i) {
      EXPECT_LE(stats.drafted[i], stats.drafted[i - 1]);
      EXPECT_LE(stats.accepted[i], stats.accepted[i - 1]);
    }
    // Each pass gives its accepted drafts and one more token; the first token came from the prompt.
    const long accepted = std::accumulate(stats.accepted.begin(), stats.accepted.end(), 0L);
    EXPECT_EQ(stats.passes + accepted, 29);
    EXPECT_DOUBLE_EQ(stats.tokens_per_pass(), 29.0 / stats.passes);
    EXPECT_GT(stats.prompt_tok_s(), 0);
    EXPECT_GT(stats.decode_tok_s(), 0);
  }
}

TEST(Generate, PlainDecodingHasNoDraftsToCount) {
  HeadDrafter head(model());
  for (const bool has_drafter : {true, false}) {
    const Generation result = generate(model(), has_drafter ? &head : nullptr, request_of(has_drafter ? 0 : 3, 10));
    EXPECT_EQ(result.stats.depth, 0);
    EXPECT_TRUE(result.stats.drafted.empty());
    EXPECT_TRUE(result.stats.accepted.empty());
    EXPECT_EQ(result.stats.passes, 9);
    EXPECT_EQ(result.stats.tokens_per_pass(), 1);
  }
}

TEST(Generate, StatsHaveARowPerDepthEvenWhenNothingWasDrafted) {
  HeadDrafter head(model());
  const Stats stats = generate(model(), &head, request_of(3, 1)).stats;
  EXPECT_EQ(stats.drafted, std::vector<long>(3, 0));
  EXPECT_EQ(stats.accepted, std::vector<long>(3, 0));
  EXPECT_EQ(stats.passes, 0);
  EXPECT_EQ(stats.tokens_per_pass(), 0);
  EXPECT_EQ(stats.decode_tok_s(), 0);
}

TEST(Generate, ASpeedIsNeverNegative) {
  const std::atomic<bool> cancel{true};
  GenerateRequest request = request_of(3, 10);
  request.cancel = &cancel;
  const Stats stats = generate(model(), nullptr, request).stats;
  EXPECT_EQ(stats.generated, 0);
  EXPECT_GE(stats.decode_tok_s(), 0);
  EXPECT_GE(stats.tokens_per_pass(), 0);
}

TEST(Generate, AnErrorInThePromptsPassGivesNoToken) {
  ScriptedModel poisoned(model());
  poisoned.on_logits = [](const ScriptedModel::Row&, std::span<float> logits) {
    logits[0] = std::numeric_limits<float>::quiet_NaN();
  };
  const Generation result = generate(poisoned, nullptr, request_of(0, 10));
  EXPECT_EQ(result.finish, Finish::error);
  EXPECT_TRUE(result.ids.empty());
  EXPECT_NE(result.problem.find("token 0:"), std::string::npos) << result.problem;
}

// -inf is a masked id, not damage.
TEST(Generate, MaskedIdsAreNeverEmitted) {
  ScriptedModel masked(model());
  masked.on_logits = [](const ScriptedModel::Row&, std::span<float> logits) {
    for (std::size_t id = 0; id < logits.size(); ++id) {
      if (id % 16 != 7) logits[id] = -std::numeric_limits<float>::infinity();
    }
  };
  HeadDrafter head(masked);
  GenerateRequest request = request_of(3, 20);
  request.options.sampling = {.temperature = 1.0, .seed = 4};
  const Generation result = generate(masked, &head, request);
  EXPECT_EQ(result.finish, Finish::length);
  for (const TokenId id : result.ids) EXPECT_EQ(id % 16, 7);
}

}  // namespace
}  // namespace foresay
