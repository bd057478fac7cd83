// Several sequences in shared rounds: each gets the very ids and bits of a run alone, whoever joins or leaves.
#include <gtest/gtest.h>

#include <random>

#include "decode/prefill.h"
#include "decode/round.h"
#include "lossless/subject.h"

namespace foresay {
namespace {

/// A request and what it gives alone.
struct Request {
  DecodeOptions options;
  Truth truth;
};

/// Requests of different prompts, lengths, depths and samplers.
std::vector<Request> make_requests(Subject& subject, int count, int longest_prompt) {
  std::vector<Request> requests;
  const int depths[] = {0, 3, 8, 1, 5};
  for (int i = 0; i < count; ++i) {
    DecodeOptions options;
    options.sampling = sampling(i % kSamplings);
    if (!options.sampling.greedy()) options.sampling.seed = static_cast<std::uint64_t>(40 + i);
    options.max_tokens = 6 + i * 7 % 19;
    const int length =
        std::min(longest_prompt, kPromptLengths[static_cast<std::size_t>(i) % std::size(kPromptLengths)]);
    const Truth truth(subject.model(), subject.prompt(length, static_cast<std::uint32_t>(i)), options);
    options.depth = depths[static_cast<std::size_t>(i) % std::size(depths)];
    requests.push_back({options, truth});
  }
  return requests;
}

std::vector<Ids> texts_of(const std::vector<Request>& requests) {
  std::vector<Ids> texts;
  for (const Request& request : requests) texts.push_back(request.truth.text);
  return texts;
}

class Schedule : public SubjectTest {};

// Prefilled one after another, the first already decoding; the second leaves before its end.
TEST_P(Schedule, ThreeSequencesJoinAndOneLeaves) {
  const std::vector<Request> requests = make_requests(subject_(), 3, 64);
  for (int threads = 1; threads <= 2; ++threads) {
    for (int kind = 0; kind < 3; ++kind) {
      Witness witness(subject_().model(threads));
      const Model& model = witness.model;
      HeadDrafter head(model);
      Oracle oracle(texts_of(requests));
      Half half(texts_of(requests));
      Drafter& drafter = kind == 0 ? static_cast<Drafter&>(head) : kind == 1 ? oracle : half;
      std::vector<std::unique_ptr<Sequence>> sequences;
      std::vector<Sequence*> running;
      for (const Request& request : requests) {
        sequences.push_back(std::make_unique<Sequence>(model, request.truth.prompt, request.options));
        running.push_back(sequences.back().get());
        prefill(model, &drafter, *sequences.back(), 7);
        round(model, &drafter, running);
        round(model, &drafter, running);
      }
      const Ids left_with = sequences[1]->tokens;
      running.erase(running.begin() + 1);
      for (int i = 0; i < 32; ++i) round(model, &drafter, running);

      for (const std::size_t i : {0u, 2u}) {
        EXPECT_EQ(sequences[i]->finish, Finish::length);
        EXPECT_EQ(sequences[i]->tokens, requests[i].truth.text) << "sequence " << i;
        EXPECT_TRUE(witness.equals(requests[i].truth, sequences[i]->caches.get())) << "sequence " << i;
      }
      const Ids& whole = requests[1].truth.text;
      ASSERT_LE(left_with.size(), whole.size());
      EXPECT_TRUE(std::equal(left_with.begin(), left_with.end(), whole.begin()));
      // It left nothing half done: its caches go on alone.
      Sequence* const alone[] = {sequences[1].get()};
      while (sequences[1]->finish == Finish::running) round(model, &drafter, alone);
      EXPECT_EQ(sequences[1]->tokens, whole);
    }
  }
}

// Random schedules: any number of sequences joins at any time, rounds run over any of them in any order, and some are
// dropped.
class RandomSchedule : public ::testing::TestWithParam<int> {};

TEST_P(RandomSchedule, EverySequenceIsThatOfASoloRun) {
  Subject& hybrid = subject("tiny_hybrid");
  const std::vector<Request> requests = make_requests(hybrid, 18, 65);
  for (int schedule = 0; schedule < 50; ++schedule) {
    std::mt19937 random(static_cast<std::uint32_t>(GetParam() * 50 + schedule));
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const Model& model = hybrid.model(1 + schedule % 2);
    HeadDrafter head(model);
    Half half(texts_of(requests));
    Hesitant hesitant(head);
    Drafter* const drafters[] = {&head, &half, &hesitant};
    Drafter* const drafter = drafters[below(3)];

    struct Member {
      const Request* request;
      std::unique_ptr<Sequence> sequence;
    };
    std::vector<Member> members;
    int joined = 0, finished = 0;
    while (joined < 6 || !members.empty()) {
      if (joined < 6 && members.size() < 4 && below(2) == 0) {
        const Request& request = requests[below(requests.size())];
        auto sequence = std::make_unique<Sequence>(model, request.truth.prompt, request.options);
        prefill(model, drafter, *sequence, static_cast<int>(below(70)));
        members.push_back({&request, std::move(sequence)});
        ++joined;
      }
      std::vector<Sequence*> taking_part;
      for (const Member& member : members) {
        if (below(4) != 0) taking_part.push_back(member.sequence.get());
      }
      std::shuffle(taking_part.begin(), taking_part.end(), random);
      round(model, drafter, taking_part);
      for (std::size_t i = members.size(); i-- > 0;) {
        const Ids& tokens = members[i].sequence->tokens;
        const Ids& text = members[i].request->truth.text;
        ASSERT_LE(tokens.size(), text.size());
        ASSERT_TRUE(std::equal(tokens.begin(), tokens.end(), text.begin())) << "schedule " << schedule;
        const bool is_done = members[i].sequence->finish != Finish::running;
        if (is_done) {
          ASSERT_EQ(tokens, text) << "schedule " << schedule;
          ++finished;
        }
        if (is_done || below(40) == 0) members.erase(members.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    EXPECT_GT(finished, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(, Schedule, ::testing::ValuesIn(kSubjects), [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(, RandomSchedule, ::testing::Range(0, 6));

}  // namespace
}  // namespace foresay
