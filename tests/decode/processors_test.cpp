#include "decode/sample/processors.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "decode/chain_by_definition.h"

namespace foresay {
namespace {

using Ids = std::vector<TokenId>;
using Row = std::vector<float>;

constexpr float kMasked = -std::numeric_limits<float>::infinity();

Row processed(Row row, const Ids& history, const SamplingOptions& options, const Ids& forbidden = {}) {
  process(row, {history, {}}, options, forbidden);
  return row;
}

TEST(History, JoinsKnownAndDraftedTokens) {
  const Ids known = {4, 5}, drafted = {6, 7, 8};
  const History history = {known, drafted};
  ASSERT_EQ(history.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(history[i], static_cast<TokenId>(4 + i));
}

TEST(Process, IsOffByDefault) {
  EXPECT_FALSE(has_processors({}, {}));
  EXPECT_TRUE(has_processors({}, Ids{3}));
  EXPECT_EQ(processed({1, -2, 3}, {0, 1, 2}, {}), (Row{1, -2, 3}));
}

TEST(Process, RepetitionPenaltyIsSignAwareAndCountsAnIdOnce) {
  EXPECT_EQ(processed({4, -4, 4, 0}, {0, 0, 0, 1}, {.repetition_penalty = 2}), (Row{2, -8, 4, 0}));
}

TEST(Process, PresenceCountsOnceAndFrequencyEveryTime) {
  EXPECT_EQ(processed({4, 4, 4}, {0, 0, 1}, {.presence_penalty = 0.5}), (Row{3.5, 3.5, 4}));
  EXPECT_EQ(processed({4, 4, 4}, {0, 0, 1}, {.frequency_penalty = 0.5}), (Row{3, 3.5, 4}));
}

TEST(Process, AWindowSeesTheNewestTokensAndZeroSeesAll) {
  const Ids history = {0, 1, 2};
  EXPECT_EQ(processed({4, 4, 4}, history, {.presence_penalty = 1, .presence_window = 2}), (Row{4, 3, 3}));
  EXPECT_EQ(processed({4, 4, 4}, history, {.presence_penalty = 1, .presence_window = 0}), (Row{3, 3, 3}));
  EXPECT_EQ(processed({4, 4, 4}, history, {.presence_penalty = 1, .presence_window = 9}), (Row{3, 3, 3}));
}

TEST(Process, DraftedTokensCountAsThoseThatAreKnown) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Ids history(random() % 30);
    for (TokenId& id : history) id = static_cast<TokenId>(random() % 8);
    const SamplingOptions options = {.repetition_penalty = 1.3,
        .presence_penalty = 0.2,
        .frequency_penalty = 0.1,
        .repetition_window = static_cast<int>(random() % 9),
        .presence_window = static_cast<int>(random() % 9),
        .frequency_window = static_cast<int>(random() % 9),
        .bad_words = {{1, 2}, {3}, {4, 5, 6}}};
    const Row row = {1, -1, 2, -2, 3, -3, 0, 0.5f};
    const Row whole = processed(row, history, options);
    const std::size_t cut = history.empty() ? 0 : random() % (history.size() + 1);
    Row split = row;
    process(split, {std::span(history).first(cut), std::span(history).subspan(cut)}, options, {});
    ASSERT_EQ(split, whole);

    std::vector<double> expected(row.begin(), row.end());
    process_by_definition(expected, history, options);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (expected[i] == kMaskedOut) {
        ASSERT_EQ(whole[i], kMasked);
      } else {
        ASSERT_NEAR(whole[i], expected[i], 1e-5);
      }
    }
  }
}

TEST(Process, ABadWordLosesOnlyTheTokenThatWouldCompleteIt) {
  const SamplingOptions options = {.bad_words = {{1, 2}}};
  EXPECT_EQ(processed({0, 0, 0}, {0, 1}, options), (Row{0, 0, kMasked}));
  EXPECT_EQ(processed({0, 0, 0}, {1, 0}, options), (Row{0, 0, 0}));
  EXPECT_EQ(processed({0, 0, 0}, {}, options), (Row{0, 0, 0}));
  EXPECT_EQ(processed({0, 0, 0}, {}, {.bad_words = {{2}}}), (Row{0, 0, kMasked}));
}

TEST(Process, BiasComesFirstAndMasksLast) {
  EXPECT_EQ(processed({2, 0}, {0}, {.repetition_penalty = 2, .logit_bias = {{0, 6.0f}}}), (Row{4, 0}));
  EXPECT_EQ(processed({2, 0}, {}, {.logit_bias = {{0, 100.0f}}, .bad_words = {{0}}}), (Row{kMasked, 0}));
  EXPECT_EQ(processed({2, 0}, {}, {.logit_bias = {{0, 100.0f}}}, {0}), (Row{kMasked, 0}));
}

TEST(Process, IdsOutsideTheRowAreIgnored) {
  EXPECT_EQ(processed({1, 2}, {7, -1}, {.repetition_penalty = 2, .logit_bias = {{9, 1.0f}}, .bad_words = {{5}}}, {8}),
      (Row{1, 2}));
}

}  // namespace
}  // namespace foresay
