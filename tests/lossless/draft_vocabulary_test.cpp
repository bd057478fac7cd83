// Drafts from a part of the vocabulary change how many survive, never what is emitted.
#include <gtest/gtest.h>

#include "decode/batch.h"
#include "lossless/subject.h"
#include "model/vocabulary_subset.h"

namespace foresay {
namespace {

class DraftVocabularyRuns : public SubjectTest {};

TEST_P(DraftVocabularyRuns, GiveThePlainIds) {
  Subject& model = subject_();
  const int vocab = model.model().info().vocab;
  for (int index = 0; index < kSamplings; ++index) {
    DecodeOptions options;
    options.sampling = sampling(index);
    if (!options.sampling.greedy()) options.sampling.seed = static_cast<std::uint64_t>(40 + index);
    options.max_tokens = 16;
    const Truth truth(model.model(), model.prompt(65, static_cast<std::uint32_t>(index)), options);
    for (const int low : {1, vocab / 4, vocab / 2}) {
      if (model.is_trained() && (low == 1) != (index == 0)) continue;  // a run of these takes long
      for (const int depth : {1, 3, 8}) {
        if (model.is_trained() && depth == 1) continue;
        options.depth = depth;
        options.draft_vocabulary = low;
        HeadDrafter head(model.model());
        const Generation result = decode(model.model(), &head, truth.prompt, options, 40);
        ASSERT_EQ(result.ids, truth.ids) << "sampler " << index << " low " << low << " depth " << depth;
        EXPECT_GT(result.stats.drafted.front(), 0);
      }
    }
  }
}

// Identical, on every lane: what linear_subset() must give.
TEST_P(DraftVocabularyRuns, HeadLogitsOfAPartAreTheVeryValuesOfTheWhole) {
  const Model& model = subject_().model();
  const int vocab = model.info().vocab;
  const Ids text = subject_().prompt(6);
  for (const VocabularySubset& part : {VocabularySubset{vocab / 4, {vocab / 3, vocab / 3 + 1, vocab - 1}},
           VocabularySubset{0, {0, 5}}, VocabularySubset{1, {}}, VocabularySubset{vocab, {}}}) {
    const auto head = [&](const VocabularySubset* vocabulary) {
      const auto trunk = model.make_caches();
      const HeadCaches caches = model.make_head_caches();
      Pass pass;
      pass.tokens.assign(text.begin(), text.end() - 1);
      pass.slices = {{0, static_cast<int>(text.size()) - 1, trunk.get(), false}};
      HeadPass draft;
      draft.hidden = model.head_input(model.forward(pass));
      draft.tokens.assign(text.begin() + 1, text.end());
      draft.slices = {{0, static_cast<int>(text.size()) - 1, caches.front().get(), false}};
      draft.output_rows = {1, 4};
      draft.logit_rows = {0, 1};
      draft.vocabulary = vocabulary;
      const HeadForward forward = model.draft(draft);
      EXPECT_EQ(forward.logits.width, vocabulary != nullptr ? vocabulary->size() : vocab);
      const auto values = model.ops().read(forward.logits);
      return std::vector<float>(values.begin(), values.end());
    };
    const auto whole = head(nullptr), found = head(&part);
    std::vector<float> expected;
    for (std::size_t row = 0; row < 2; ++row) {
      for (int column = 0; column < part.size(); ++column) {
        const auto id = static_cast<std::size_t>(part.id(static_cast<std::size_t>(column)));
        expected.push_back(whole[row * static_cast<std::size_t>(vocab) + id]);
      }
    }
    EXPECT_TRUE(same_bits(found, expected)) << part.low;
  }
}

INSTANTIATE_TEST_SUITE_P(
    , DraftVocabularyRuns, ::testing::ValuesIn(kSubjects), [](const auto& test) { return test.param; });

// Each gets what it gets alone, ratio acceptance included: its part of the vocabulary is its own.
TEST(DraftVocabulary, SequencesOfABatchDoNotShareTheirParts) {
  const Model& model = subject("tiny_hybrid").model();
  std::vector<DecodeOptions> options(4);
  std::vector<Ids> prompts;
  HeadDrafter head(model);
  Batch together(model, &head, 7);
  std::vector<Sequence*> sequences;
  for (std::size_t i = 0; i < options.size(); ++i) {
    options[i].sampling = sampling(i % 2 == 0 ? 4 : 7);
    options[i].sampling.seed = i;
    options[i].sampling.acceptance = i < 2 ? Acceptance::ratio : Acceptance::coupled;
    options[i].depth = 1 + static_cast<int>(i);
    options[i].max_tokens = 24;
    options[i].draft_vocabulary = std::array{8, 8, 24, 0}[i];
    prompts.push_back(subject("tiny_hybrid").prompt(5 + 3 * static_cast<int>(i), static_cast<std::uint32_t>(i)));
    sequences.push_back(&together.join(std::make_unique<Sequence>(model, prompts[i], options[i])));
  }
  while (together.step()) {
  }
  for (std::size_t i = 0; i < options.size(); ++i) {
    HeadDrafter alone(model);
    const Ids expected = decode(model, &alone, prompts[i], options[i]).ids;
    EXPECT_EQ(Ids(sequences[i]->tokens.begin() + sequences[i]->prompt_length, sequences[i]->tokens.end()), expected)
        << i;
  }
}

}  // namespace
}  // namespace foresay
