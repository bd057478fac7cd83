// The promise itself: with a given sampler and seed, the same ids from the same logits at every depth, prompt chunking,
// number of threads and drafter. Every comparison is of identical ids and identical bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "lossless/subject.h"

namespace foresay {
namespace {

constexpr int kChunks[] = {1, 7, 64, 0};  // 0: all at once
constexpr const char* kDrafters[] = {"head", "oracle", "liar", "half"};

struct Combination {
  int depth, chunk, threads, drafter;
};

/// Everything with everything on small models. A trained model gets every pair of drafter and chunk, and over the
/// samplers every depth with every drafter.
std::vector<Combination> combinations(bool all, int sampling_index) {
  std::vector<Combination> list;
  for (int drafter = 0; drafter < 4; ++drafter) {
    for (int chunk = 0; chunk < 4; ++chunk) {
      if (!all) {
        list.push_back({1 + (6 * chunk + 3 * drafter + sampling_index) % 8, kChunks[chunk],
            1 + (drafter + chunk + sampling_index) % 2, drafter});
        continue;
      }
      for (int depth = 1; depth <= 8; ++depth) {
        for (int threads = 1; threads <= 2; ++threads) list.push_back({depth, kChunks[chunk], threads, drafter});
      }
    }
  }
  return list;
}

std::unique_ptr<Drafter> make_drafter(int kind, const Model& model, const Truth& truth) {
  const std::vector<Ids> texts = {truth.text};
  if (kind == 0) return std::make_unique<HeadDrafter>(model);
  if (kind == 1) return std::make_unique<Oracle>(texts);
  if (kind == 2) return std::make_unique<Liar>();
  return std::make_unique<Half>(texts);
}

using Parameters = std::tuple<std::string, int>;

class Grid : public ::testing::TestWithParam<Parameters> {};

TEST_P(Grid, GivesThePlainIdsFromThePlainLogits) {
  const auto [name, sampling_index] = GetParam();
  Subject& model = subject(name);
  ASSERT_TRUE(model.is_present()) << model.folder() << " is not there";

  DecodeOptions options;
  options.max_tokens = 20;
  std::vector<Truth> truths;
  std::vector<SamplingOptions> samplers;
  for (const int length : kPromptLengths) {
    options.sampling = sampling(sampling_index);
    if (!options.sampling.greedy()) options.sampling.seed = static_cast<std::uint64_t>(100 * sampling_index + length);
    truths.emplace_back(model.model(), model.prompt(length), options);
    samplers.push_back(options.sampling);
  }

  long head_drafted = 0, head_accepted = 0;  // at the first position
  for (const Combination& c : combinations(!model.is_trained(), sampling_index)) {
    // Over the samplers each combination meets each prompt.
    const int chunk_index = static_cast<int>(std::ranges::find(kChunks, c.chunk) - std::begin(kChunks));
    const auto prompt = static_cast<std::size_t>((c.depth + chunk_index + c.threads + c.drafter + sampling_index) % 6);
    const Truth& truth = truths[prompt];
    options.sampling = samplers[prompt];
    options.depth = c.depth;
    const std::string run = fmt::format("depth {}, chunk {}, {} threads, {}, prompt of {}", c.depth, c.chunk, c.threads,
        kDrafters[c.drafter], truth.prompt.size());

    Witness witness(model.model(c.threads));
    const auto drafter = make_drafter(c.drafter, witness.model, truth);
    const Generation result = decode(witness.model, drafter.get(), truth.prompt, options, c.chunk);
    ASSERT_EQ(result.ids, truth.ids) << run;
    ASSERT_EQ(result.finish, Finish::length) << run;
    ASSERT_TRUE(witness.equals(truth)) << run;
    if (c.drafter == 0) {
      head_drafted += result.stats.drafted.front();
      head_accepted += result.stats.accepted.front();
    }
  }
  if (model.is_trained()) {
    EXPECT_GT(head_accepted, head_drafted / 4);  // or the head was never put to the test
  }
}

INSTANTIATE_TEST_SUITE_P(
    , Grid, ::testing::Combine(::testing::ValuesIn(kSubjects), ::testing::Range(0, kSamplings)), [](const auto& test) {
      const int index = std::get<1>(test.param);
      return fmt::format("{}_{}", std::get<0>(test.param), index == 0 ? "greedy" : fmt::format("sampled{}", index));
    });

class Plain : public SubjectTest {};

TEST_P(Plain, DecodingDoesNotDependOnChunksOrThreads) {
  DecodeOptions options;
  options.max_tokens = 8;
  for (const int sampling_index : {0, 4}) {
    options.sampling = sampling(sampling_index);
    if (!options.sampling.greedy()) options.sampling.seed = 9;
    for (const int length : kPromptLengths) {
      if (subject_().is_trained() && length != 65) continue;
      options.depth = 0;
      const Truth truth(subject_().model(), subject_().prompt(length, 1), options);
      for (const int chunk : kChunks) {
        for (int threads = 1; threads <= 2; ++threads) {
          const std::string run = fmt::format("chunk {}, {} threads, prompt of {}", chunk, threads, length);
          Witness witness(subject_().model(threads));
          ASSERT_EQ(decode(witness.model, nullptr, truth.prompt, options, chunk).ids, truth.ids) << run;
          ASSERT_TRUE(witness.equals(truth)) << run;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Plain, ::testing::ValuesIn(kSubjects), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace foresay
