// Bias, penalties, forbidden tokens and log-probabilities act on every row with that row's own history: what they give
// does not depend on drafting.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "decode/sample/row.h"
#include "lossless/subject.h"

namespace foresay {
namespace {

class Processors : public SubjectTest {
 protected:
  [[nodiscard]] const Model& model() const { return subject_().model(); }
  [[nodiscard]] Ids prompt(int length = 9) const { return subject_().prompt(length); }

  /// The same request without drafts, with the head, and with drafters that are always, never and half right.
  void expect_same_at_every_depth(DecodeOptions options) const {
    const Ids start = prompt();
    options.depth = 0;
    const Generation plain = decode(model(), nullptr, start, options);
    Ids text = start;
    text.insert(text.end(), plain.ids.begin(), plain.ids.end());
    HeadDrafter head(model());
    Oracle oracle({text});
    Liar liar;
    Half half({text});
    const std::vector<Drafter*> drafters = subject_().is_trained()
                                               ? std::vector<Drafter*>{&head, &half}
                                               : std::vector<Drafter*>{&head, &oracle, &liar, &half};
    for (Drafter* drafter : drafters) {
      for (const int depth : subject_().is_trained() ? std::vector<int>{3, 8} : std::vector<int>{1, 2, 3, 8}) {
        options.depth = depth;
        const Generation drafted = decode(model(), drafter, start, options, 5);
        ASSERT_EQ(drafted.ids, plain.ids) << "depth " << depth;
        ASSERT_EQ(drafted.finish, plain.finish);
        ASSERT_EQ(drafted.log_probabilities.size(), plain.log_probabilities.size());
        for (std::size_t i = 0; i < plain.log_probabilities.size(); ++i) {
          const auto &a = drafted.log_probabilities[i], &b = plain.log_probabilities[i];
          ASSERT_EQ(a.value, b.value) << "token " << i << ", depth " << depth;
          ASSERT_EQ(a.top.size(), b.top.size());
          for (std::size_t n = 0; n < b.top.size(); ++n) {
            ASSERT_EQ(a.top[n].id, b.top[n].id);
            ASSERT_EQ(a.top[n].value, b.top[n].value);
          }
        }
      }
    }
  }

  [[nodiscard]] static DecodeOptions options_of(SamplingOptions sampling, int max_tokens = 32) {
    DecodeOptions options;
    options.sampling = std::move(sampling);
    if (!options.sampling.greedy()) options.sampling.seed = 3;
    options.max_tokens = max_tokens;
    return options;
  }
};

// Case B20: a bias once acted on the first token of a round only.
TEST_P(Processors, BiasActsOnEveryToken) {
  for (const double temperature : {0.0, 1.0}) {
    for (const float bias : {-100.0f, 100.0f}) {
      DecodeOptions options = options_of({.temperature = temperature, .logit_bias = {{7, bias}}}, 64);
      ASSERT_NO_FATAL_FAILURE(expect_same_at_every_depth(options));
      HeadDrafter head(model());
      options.depth = 3;
      const Ids ids = decode(model(), &head, prompt(), options).ids;
      ASSERT_EQ(ids.size(), 64u);
      EXPECT_EQ(std::ranges::count(ids, 7), bias > 0 ? 64 : 0);
    }
  }
}

// Case B22: rejected drafts were once counted by the penalties, accepted ones twice. Case B23: all of them under MTP.
TEST_P(Processors, EachPenaltySeesTheTokensBeforeItsRow) {
  for (const double temperature : {0.0, 0.8}) {
    for (const int window : {0, 3, 20}) {
      const SamplingOptions each[] = {
          {.temperature = temperature, .repetition_penalty = 1.5, .repetition_window = window},
          {.temperature = temperature, .presence_penalty = 0.5, .presence_window = window},
          {.temperature = temperature, .frequency_penalty = 0.5, .frequency_window = window},
      };
      for (const SamplingOptions& sampling : each) {
        ASSERT_NO_FATAL_FAILURE(expect_same_at_every_depth(options_of(sampling, subject_().is_trained() ? 16 : 32)));
      }
    }
  }
}

TEST_P(Processors, FiltersCoinsAndBadWordsTogether) {
  for (int index = 6; index < kSamplings; ++index) {
    ASSERT_NO_FATAL_FAILURE(expect_same_at_every_depth(options_of(sampling(index))));
  }
}

TEST_P(Processors, BadWordsNeverComeAndTheRestIsFree) {
  DecodeOptions options = options_of({}, 48);
  const Ids free = decode(model(), nullptr, prompt(), options).ids;
  // The first pair of the plain answer, and a single id of it.
  const auto single = std::ranges::find_if(free, [&](TokenId id) { return id != free[0]; });
  options.sampling.bad_words = {{free[0], free[1]}};
  if (single != free.end()) options.sampling.bad_words.push_back({*single});
  ASSERT_NO_FATAL_FAILURE(expect_same_at_every_depth(options));
  const Ids ids = decode(model(), nullptr, prompt(), options).ids;
  EXPECT_NE(ids, free);
  if (single != free.end()) {
    EXPECT_EQ(std::ranges::count(ids, *single), 0);
  }
  Ids text = prompt();  // a word may begin in the prompt
  text.insert(text.end(), ids.begin(), ids.end());
  for (std::size_t i = prompt().size(); i < text.size(); ++i) {
    EXPECT_FALSE(text[i - 1] == free[0] && text[i] == free[1]) << i;
  }
}

TEST_P(Processors, StopIdsWaitForMinTokens) {
  DecodeOptions options = options_of({}, 24);
  const Ids free = decode(model(), nullptr, prompt(), options).ids;
  options.stop_ids = {free[1]};  // would end the answer at once
  options.min_tokens = 10;
  ASSERT_NO_FATAL_FAILURE(expect_same_at_every_depth(options));
  const Ids ids = decode(model(), nullptr, prompt(), options).ids;
  EXPECT_GT(ids.size(), 10u);
  EXPECT_EQ(std::count(ids.begin(), ids.begin() + 10, free[1]), 0);
}

// Case B25: log-probabilities were once all 0 under any draft. Case B10: and ids were 0 behind rejections.
TEST_P(Processors, LogProbabilitiesAreTheTargetsOwn) {
  DecodeOptions options = options_of({.temperature = 0.9, .top_k = 8, .presence_penalty = 0.5});
  options.top_logprobs = 5;
  ASSERT_NO_FATAL_FAILURE(expect_same_at_every_depth(options));

  options.depth = 3;
  HeadDrafter head(model());
  const Ids start = prompt();
  const Generation result = decode(model(), &head, start, options);
  ASSERT_EQ(result.log_probabilities.size(), result.ids.size());
  Ids text = start;
  text.insert(text.end(), result.ids.begin(), result.ids.end());
  const Evaluation rows = evaluate(model(), text, 0);
  for (std::size_t i = 0; i < result.ids.size(); ++i) {
    // log softmax of the raw row, written out.
    const auto logits = row(rows.logits, static_cast<int>(start.size() + i) - 1, rows.vocab);
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit));
    const auto wanted = [&](TokenId id) { return logits[static_cast<std::size_t>(id)] - std::log(total); };
    const TokenLogProbabilities& found = result.log_probabilities[i];
    EXPECT_NEAR(found.value, wanted(result.ids[i]), 1e-9);
    EXPECT_LT(found.value, 0);
    ASSERT_EQ(found.top.size(), 5u);
    EXPECT_EQ(found.top[0].id, find_peak(logits).id);
    for (std::size_t n = 0; n < 5; ++n) {
      EXPECT_NEAR(found.top[n].value, wanted(found.top[n].id), 1e-9);
      EXPECT_LE(found.top[n].value, found.top[n == 0 ? 0 : n - 1].value);
    }
  }
}

// Case B77, on the decoder's side: every answer is that of a run of its own.
TEST_P(Processors, ChoicesAreRunsOfTheirOwn) {
  GenerateRequest request;
  request.prompt = prompt();
  request.options = options_of(sampling(7), 12);
  request.options.depth = 3;
  HeadDrafter head(model());
  const auto choices = generate_choices(model(), &head, request, 3);
  std::set<Ids> distinct;
  for (std::uint32_t c = 0; c < 3; ++c) {
    DecodeOptions alone = request.options;
    alone.sampling.choice = c;
    alone.depth = 0;
    EXPECT_EQ(choices[c].ids, decode(model(), nullptr, request.prompt, alone).ids) << c;
    distinct.insert(choices[c].ids);
  }
  EXPECT_EQ(distinct.size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(, Processors, ::testing::ValuesIn(kSubjects), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace foresay
