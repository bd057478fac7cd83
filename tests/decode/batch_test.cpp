// Sequences that join, leave and are cancelled at any step: each gets what it gets alone.
#include "decode/batch.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/error.h"
#include "decode/generate.h"
#include "decode/round.h"
#include "fixtures/drafters.h"
#include "fixtures/prefix_model.h"

namespace foresay {
namespace {

/// A request, and what it gives alone.
struct Request {
  Ids prompt;
  DecodeOptions options;
  Generation solo;
};

SamplingOptions random_sampling(std::mt19937& random) {
  const auto chance = [&](unsigned one_in) { return random() % one_in == 0; };
  SamplingOptions sampling;
  if (chance(4)) {
    if (chance(2)) sampling.repetition_penalty = 1.4;
    return sampling;  // greedy
  }
  sampling.temperature = chance(2) ? 0.8 : 1.5;
  if (chance(3)) sampling.top_k = 5;
  if (chance(3)) sampling.top_p = 0.9;
  if (chance(4)) sampling.min_p = 0.05;
  if (chance(3)) {
    sampling.xtc_probability = 0.5;
    sampling.xtc_threshold = 0.05;
  }
  if (chance(3)) sampling.repetition_penalty = 1.3;
  if (chance(3)) sampling.presence_penalty = 0.8;
  if (chance(3)) sampling.frequency_penalty = 0.4;
  if (chance(4)) sampling.logit_bias = {{3, 1.5f}, {7, -100.0f}};
  if (chance(4)) sampling.bad_words = {{2, 4}, {9}};
  if (chance(3)) std::ranges::shuffle(sampling.order, random);
  sampling.seed = random();
  sampling.choice = random() % 3;
  if (chance(3)) sampling.acceptance = Acceptance::ratio;
  return sampling;
}

/// Requests of every kind. What greedy and coupled ones give alone is found without drafts; ratio acceptance repeats
/// only with the same drafter and depth.
std::vector<Request> make_requests(const Model& model, Drafter& drafter, int count) {
  std::mt19937 random(7);
  std::vector<Request> requests(static_cast<std::size_t>(count));
  for (Request& request : requests) {
    request.prompt.resize(1 + random() % 30);
    for (TokenId& id : request.prompt) id = static_cast<TokenId>(random() % PrefixModel::kVocab);
    DecodeOptions& options = request.options;
    options.sampling = random_sampling(random);
    options.depth = static_cast<int>(random() % 9);
    options.max_tokens = 1 + static_cast<int>(random() % 12);
    if (random() % 3 == 0) options.stop_ids = {static_cast<TokenId>(random() % PrefixModel::kVocab), 11};
    if (random() % 3 == 0) options.min_tokens = static_cast<int>(random()) % (options.max_tokens + 1);
    options.min_tokens = std::max(options.min_tokens, 0);
    if (random() % 2 == 0) options.top_logprobs = static_cast<int>(random() % 4);
    GenerateRequest alone{.prompt = request.prompt, .options = options, .prefill_chunk = 0, .on_token = {}};
    const bool is_ratio = !options.sampling.greedy() && options.sampling.effective_acceptance() == Acceptance::ratio;
    if (!is_ratio) alone.options.depth = 0;
    request.solo = generate(model, is_ratio ? &drafter : nullptr, alone);
  }
  return requests;
}

bool same(const std::vector<TokenLogProbabilities>& a, const std::vector<TokenLogProbabilities>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.value == y.value && std::ranges::equal(x.top, y.top,
                                     [](const auto& v, const auto& w) { return v.id == w.id && v.value == w.value; });
  });
}

Ids generated(const Sequence& sequence) {
  return {sequence.tokens.begin() + sequence.prompt_length, sequence.tokens.end()};
}

void expect_is_solo(const Sequence& sequence, const Request& request) {
  ASSERT_EQ(generated(sequence), request.solo.ids);
  ASSERT_EQ(sequence.finish, request.solo.finish);
  ASSERT_TRUE(same(sequence.log_probabilities, request.solo.log_probabilities));
}

/// Part `part` of the schedules for a model with such a head.
struct SchedulesOf {
  HeadScheme scheme;
  int part;
};

class BatchSchedules : public ::testing::TestWithParam<SchedulesOf> {
 protected:
  static constexpr int kSchedules = 1000;  // of each part
  PrefixModel model_{GetParam().scheme};
};

TEST_P(BatchSchedules, EverySequenceGetsWhatItGetsAlone) {
  HeadDrafter drafter(model_);
  const std::vector<Request> requests = make_requests(model_, drafter, 64);
  int finished = 0, cancelled = 0, continued = 0;
  for (int schedule = 0; schedule < kSchedules; ++schedule) {
    SCOPED_TRACE(schedule);
    std::mt19937 random(static_cast<std::uint32_t>(GetParam().part * kSchedules + schedule));
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    Batch batch(model_, &drafter, static_cast<int>(below(3)) * 7);
    std::map<const Sequence*, const Request*> members;
    int to_join = 1 + static_cast<int>(below(6));
    while (to_join > 0 || batch.size() > 0) {
      if (to_join > 0 && (batch.size() == 0 || below(3) == 0)) {
        const Request& request = requests[below(requests.size())];
        // Sometimes one prompt for two requests with options of their own.
        std::vector<std::unique_ptr<Sequence>> group;
        group.push_back(std::make_unique<Sequence>(model_, request.prompt, request.options));
        members[group.back().get()] = &request;
        if (below(4) == 0) {
          group.push_back(std::make_unique<Sequence>(model_, request.prompt, request.options));
          members[group.back().get()] = &request;
        }
        batch.join(std::move(group));
        --to_join;
      }
      batch.step();
      for (auto member = members.begin(); member != members.end();) {
        const Sequence& sequence = *member->first;
        const bool is_done = sequence.finish != Finish::running, is_cancelled = !is_done && below(25) == 0;
        if (!is_done && !is_cancelled) {
          ++member;
          continue;
        }
        const Request& request = *member->second;
        member = members.erase(member);
        std::unique_ptr<Sequence> left = batch.leave(sequence);
        if (is_done) {
          ASSERT_NO_FATAL_FAILURE(expect_is_solo(*left, request));
          ++finished;
          continue;
        }
        ++cancelled;
        const Ids so_far = generated(*left);
        ASSERT_TRUE(std::equal(so_far.begin(), so_far.end(), request.solo.ids.begin()));
        if (left->generated() == 0) continue;
        // It left nothing half done: alone it goes on as if it had always been.
        HeadDrafter own(model_);
        Sequence* const alone[] = {left.get()};
        while (left->finish == Finish::running) round(model_, &own, alone);
        ASSERT_NO_FATAL_FAILURE(expect_is_solo(*left, request));
        ++continued;
      }
    }
    ASSERT_TRUE(members.empty());
  }
  EXPECT_GT(finished, kSchedules);
  EXPECT_GT(cancelled, kSchedules / 10);
  EXPECT_GT(continued, kSchedules / 20);
}

std::vector<SchedulesOf> all_schedules() {
  std::vector<SchedulesOf> all;
  for (int part = 0; part < 10; ++part) all.push_back({HeadScheme::reused, part});
  for (int part = 10; part < 12; ++part) {
    all.push_back({HeadScheme::chained, part});
    all.push_back({HeadScheme::parallel, part});
  }
  return all;
}

std::string name_of_schedules(const ::testing::TestParamInfo<SchedulesOf>& test) {
  const char* const names[] = {"reused", "chained", "parallel"};
  return fmt::format("{}_{}", names[static_cast<int>(test.param.scheme)], test.param.part);
}

INSTANTIATE_TEST_SUITE_P(, BatchSchedules, ::testing::ValuesIn(all_schedules()), name_of_schedules);

TEST(Batch, ReadsOneChunkPerStepWhileOthersDecode) {
  const PrefixModel model;
  Batch batch(model, nullptr, 4);
  DecodeOptions options;
  options.max_tokens = 20;
  const Sequence& first = batch.join(std::make_unique<Sequence>(model, Ids{1}, options));
  batch.step();
  EXPECT_EQ(first.generated(), 1);
  const Sequence& second = batch.join(std::make_unique<Sequence>(model, Ids(10, 2), options));
  for (int step = 1; step <= 3; ++step) {
    EXPECT_EQ(second.generated(), 0);
    EXPECT_TRUE(batch.step());
    EXPECT_EQ(first.generated(), 1 + step);
  }
  EXPECT_EQ(second.generated(), 1);
  while (batch.step()) {
  }
  EXPECT_EQ(first.generated(), 20);
  EXPECT_EQ(second.generated(), 20);
  EXPECT_EQ(batch.size(), 2u);
  (void)batch.leave(first);
  EXPECT_EQ(batch.size(), 1u);
}

// Cancelled while the prompt is read: its pass is not run, and whoever shares the prompt reads on.
TEST(Batch, ASequenceThatWasFinishedFromOutsideReadsNoFurther) {
  const PrefixModel model;
  DecodeOptions options;
  options.max_tokens = 5;
  options.sampling = {.temperature = 1, .seed = 2};
  const Ids prompt = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const bool shared : {false, true}) {
    Batch batch(model, nullptr, 2);
    std::vector<std::unique_ptr<Sequence>> choices;
    choices.push_back(std::make_unique<Sequence>(model, prompt, options));
    if (shared) choices.push_back(std::make_unique<Sequence>(model, prompt, options));
    Sequence* const first = choices.front().get();
    const Sequence* const second = choices.back().get();
    batch.join(std::move(choices));
    EXPECT_TRUE(batch.step());
    first->finish = Finish::cancelled;
    EXPECT_EQ(batch.step(), shared);
    EXPECT_EQ(first->caches->length(), 2);
    EXPECT_EQ(first->generated(), 0);
    while (batch.step()) {
    }
    if (!shared) continue;
    const Generation solo = generate(model, nullptr, {.prompt = prompt, .options = options, .on_token = {}});
    EXPECT_EQ(generated(*second), solo.ids);
  }
}

TEST(Batch, APromptOfSeveralChoicesIsReadOnce) {
  const PrefixModel model;
  HeadDrafter drafter(model);
  GenerateRequest request;
  request.prompt = {1, 2, 3, 4, 5, 6, 7};
  request.options.max_tokens = 12;
  request.options.sampling = {.temperature = 1, .seed = 5};
  request.prefill_chunk = 3;
  const std::vector<Generation> choices = generate_choices(model, &drafter, request, 3);
  ASSERT_EQ(choices.size(), 3u);
  EXPECT_NE(choices[0].ids, choices[1].ids);
  for (std::uint32_t c = 0; c < 3; ++c) {
    GenerateRequest alone = request;
    alone.options.sampling.choice = c;
    alone.options.depth = 0;
    EXPECT_EQ(choices[c].ids, generate(model, nullptr, alone).ids) << c;
    EXPECT_EQ(choices[c].stats.prompt_tokens, 7);
  }
}

TEST(Batch, AChoiceMayEndEarlyByItsCaller) {
  const PrefixModel model;
  GenerateRequest request;
  request.prompt = {1, 2, 3};
  request.options.max_tokens = 9;
  request.options.sampling = {.temperature = 1, .seed = 5};
  std::vector<int> seen(3);
  const auto choices = generate_choices(model, nullptr, request, 3,
      [&](int choice, TokenId) { return ++seen[static_cast<std::size_t>(choice)] == 2 && choice == 1; });
  EXPECT_EQ(seen, (std::vector<int>{9, 2, 9}));
  EXPECT_EQ(choices[1].finish, Finish::stop);
  EXPECT_EQ(choices[2].finish, Finish::length);
}

template <typename Act>
ErrorCode code_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "did not throw";
  return ErrorCode::internal;
}

TEST(Batch, WhatCannotBeIsAnError) {
  const PrefixModel model;
  Batch batch(model);
  const Sequence stranger(model, Ids{1}, DecodeOptions{});
  EXPECT_EQ(code_of([&] { (void)batch.leave(stranger); }), ErrorCode::internal);
  std::vector<std::unique_ptr<Sequence>> mixed;
  mixed.push_back(std::make_unique<Sequence>(model, Ids{1}, DecodeOptions{}));
  mixed.push_back(std::make_unique<Sequence>(model, Ids{2}, DecodeOptions{}));
  EXPECT_EQ(code_of([&] { batch.join(std::move(mixed)); }), ErrorCode::internal);
  EXPECT_EQ(code_of([&] { (void)generate_choices(model, nullptr, {.prompt = {1}, .options = {}, .on_token = {}}, 0); }),
      ErrorCode::usage);
}

}  // namespace
}  // namespace foresay
