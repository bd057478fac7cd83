// Drafts that come from a part of the vocabulary: the rows, and the chain over them.
#include "decode/draft/draft_vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include "decode/sample/chance.h"
#include "decode/sample/processors.h"
#include "decode/sample/shape.h"

namespace foresay {
namespace {

using Ids = std::vector<TokenId>;

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(VocabularySubset, ColumnsAreIdsInOrder) {
  const VocabularySubset subset{4, {6, 9, 10}};
  EXPECT_EQ(subset.size(), 7);
  const Ids ids = {0, 1, 2, 3, 6, 9, 10};
  for (std::size_t column = 0; column < ids.size(); ++column) {
    EXPECT_EQ(subset.id(column), ids[column]);
    EXPECT_EQ(subset.column(ids[column]), column);
  }
  for (const TokenId id : {-1, 4, 5, 7, 8, 11}) EXPECT_EQ(subset.column(id), std::nullopt) << id;
  EXPECT_EQ(subset.columns_below(0), 0u);
  EXPECT_EQ(subset.columns_below(4), 4u);
  EXPECT_EQ(subset.columns_below(7), 5u);
  EXPECT_EQ(subset.columns_below(std::numeric_limits<TokenId>::max()), 7u);
}

TEST(DraftVocabulary, HoldsWhatIsAlwaysWantedAndTheContextHoweverItGrew) {
  const Ids tokens = {3, 70, 12, 70, 9, 50, 51, 3, 99, 50};
  DraftVocabulary at_once(10, Ids{80, 5, 50}), grown(10, Ids{80, 5, 50});
  EXPECT_EQ(at_once.subset()->extra, (Ids{50, 80}));
  at_once.grow(tokens);
  EXPECT_EQ(at_once.subset()->extra, (Ids{12, 50, 51, 70, 80, 99}));
  const auto before = grown.subset();
  for (std::size_t n = 1; n <= tokens.size(); ++n) grown.grow(std::span(tokens).first(n));
  EXPECT_EQ(grown.subset()->extra, at_once.subset()->extra);
  EXPECT_EQ(before->extra, (Ids{50, 80})) << "what a distribution refers to does not change";
  grown.grow(Ids{3, 60});  // another, shorter text
  EXPECT_EQ(grown.subset()->extra, (Ids{50, 60, 80}));
}

TEST(DraftVocabulary, AUnionHasEveryColumnAndARowIsReducedToItsOwn) {
  const VocabularySubset a{4, {5, 9}}, b{4, {7, 9, 11}}, c{6, {8}};
  const VocabularySubset* const all[] = {&a, &b, &c};
  const VocabularySubset together = union_of(all);
  EXPECT_EQ(together.low, 6);
  EXPECT_EQ(together.extra, (Ids{7, 8, 9, 11}));
  std::vector<float> row;
  for (std::size_t column = 0; column < 10; ++column) row.push_back(static_cast<float>(together.id(column)));
  for (const VocabularySubset* own : all) {
    const auto reduced = reduce(row, together, *own);
    ASSERT_EQ(reduced.size(), static_cast<std::size_t>(own->size()));
    for (std::size_t column = 0; column < reduced.size(); ++column) {
      EXPECT_EQ(reduced[column], static_cast<float>(own->id(column)));
    }
  }
}

SamplingOptions random_options(std::mt19937& random, TokenId vocab) {
  const auto id = [&] { return static_cast<TokenId>(random() % static_cast<std::uint32_t>(vocab)); };
  SamplingOptions options;
  options.temperature = std::array{0.0, 0.6, 1.0, 1.5}[random() % 4];
  if (random() % 3 == 0) options.top_k = 1 + static_cast<int>(random() % 30);
  if (random() % 3 == 0) options.top_p = 0.8;
  if (random() % 4 == 0) options.min_p = 0.02;
  options.xtc_threshold = 0.05;
  options.xtc_exempt = {id()};
  if (random() % 2) options.repetition_penalty = 1.3;
  if (random() % 3 == 0) options.presence_penalty = 0.5;
  if (random() % 3 == 0) options.frequency_penalty = 0.3;
  if (random() % 2) options.logit_bias = {{id(), 3.0f}, {id(), -2.0f}};
  if (random() % 2) options.bad_words = {{id()}, {id(), id()}};
  if (random() % 2) options.vocab_limit = vocab - static_cast<TokenId>(random() % 40);
  if (random() % 3 == 0) std::ranges::shuffle(options.order, random);
  return options;
}

// A row of a part of the vocabulary is the whole row with all other ids masked, after the processors.
TEST(DraftVocabulary, TheChainActsOnAPartAsOnTheWholeRowWithTheOthersMasked) {
  std::mt19937 random(9);
  constexpr TokenId kVocab = 300;
  std::normal_distribution<float> normal(0, 2);
  for (int round = 0; round < 400; ++round) {
    Ids context(1 + random() % 20);
    for (TokenId& id : context) id = static_cast<TokenId>(random() % kVocab);
    DraftVocabulary vocabulary(std::array{1, 40, 64, 130}[random() % 4], Ids{298, 3, 200});
    vocabulary.grow(context);
    const auto& subset = vocabulary.subset();
    const SamplingOptions options = random_options(random, kVocab);
    const Ids forbidden = random() % 2 ? Ids{200} : Ids{};
    const bool xtc = random() % 2 == 0;

    std::vector<float> whole(kVocab), part;
    for (float& logit : whole) logit = normal(random);
    for (int column = 0; column < subset->size(); ++column) {
      part.push_back(whole[static_cast<std::size_t>(subset->id(static_cast<std::size_t>(column)))]);
    }
    const std::size_t known = context.size() / 2;
    const History history{std::span(context).first(known), std::span(context).subspan(known)};
    process(whole, history, options, forbidden);
    process(part, history, options, forbidden, subset.get());
    for (TokenId id = 0; id < kVocab; ++id) {
      if (!subset->column(id)) whole[static_cast<std::size_t>(id)] = -kInf;
    }
    std::string problem;
    if (!look_for_peak(whole, options.vocab_limit, problem)) continue;  // every id that is left was masked
    const auto expected = shape(whole, options, xtc);
    LogitRow row(part);
    row.vocabulary = subset;
    const auto found = shape(row, options, xtc);
    ASSERT_EQ(found.ids(), expected.ids()) << round;
    for (std::size_t i = 0; i < found.p().size(); ++i) ASSERT_NEAR(found.p()[i], expected.p()[i], 1e-14);
    ASSERT_EQ(found.most_likely(), expected.most_likely());
    for (TokenId id = -1; id <= kVocab; ++id) ASSERT_NEAR(found.probability(id), expected.probability(id), 1e-14);
    KeyedChance chance{KeyedNoise(random())};
    for (std::uint32_t index = 0; index < 5; ++index) {
      ASSERT_EQ(chance.draw(found, index, Purpose::draw), chance.draw(expected, index, Purpose::draw));
      const auto uniform = shape(std::vector<float>(kVocab), {.temperature = 1});
      ASSERT_EQ(chance.draw(residual(uniform, found), index, Purpose::residual),
          chance.draw(residual(uniform, expected), index, Purpose::residual));
    }
  }
}

}  // namespace
}  // namespace foresay
