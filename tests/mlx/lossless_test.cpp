// The promise on the MLX lane: at every depth, prompt chunking and drafter, and in shared rounds, the ids of plain
// decoding up to the first tie, from rows that are close to plain decoding's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "decode/prefill.h"
#include "decode/round.h"
#include "decode/sample/processors.h"
#include "lossless/subject.h"
#include "mlx/tie_policy.h"

namespace foresay {
namespace {

/// Largest absolute difference of a row between passes of different rows, on logits of scale 20.
constexpr double kRowTolerance = 2e-4;

const Model& mlx_model(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Loaded>> models;
  auto& loaded = models[name];
  if (!loaded) loaded = std::make_unique<Loaded>(subject(name).folder(), make_mlx_ops(MlxDevice::cpu));
  return *loaded->model;
}

/// Compares runs with the truth and counts how many part from it.
struct Comparison {
  int runs = 0, ties = 0;
  double worst = 0;

  void add(const Ids& ids, const Truth& truth, const SamplingOptions& options, const Witness& witness,
      const std::string& run, const CacheSet* caches = nullptr) {
    SCOPED_TRACE(run);
    ++runs;
    const int first = first_difference(ids, truth.ids), prompt = static_cast<int>(truth.prompt.size());
    const double distance = witness.distance(truth, first < 0 ? truth.rows.positions : prompt + first, caches);
    EXPECT_LE(distance, kRowTolerance);
    worst = std::max(worst, distance);
    if (first < 0) return;
    ++ties;
    ASSERT_LT(first, static_cast<int>(std::min(ids.size(), truth.ids.size()))) << "a run ended early";
    const auto at = static_cast<std::size_t>(first);
    const auto raw = row(truth.rows.logits, prompt + first - 1, truth.rows.vocab);
    std::vector<float> logits(raw.begin(), raw.end());
    process(logits, {std::span(truth.text).first(static_cast<std::size_t>(prompt) + at), {}}, options, {});
    EXPECT_LE(deciding_gap(logits, options, first, truth.ids[at], ids[at]), kTau)
        << "generated index " << first << ": " << ids[at] << " instead of " << truth.ids[at];
  }
  /// Ties are rare, and every test says how many it saw.
  void finish() const {
    EXPECT_LE(ties, runs / 20 + 1);
    ::testing::Test::RecordProperty("runs", runs);
    ::testing::Test::RecordProperty("ties", ties);
    ::testing::Test::RecordProperty("worst_row", fmt::format("{:.2g}", worst));
  }
};

std::unique_ptr<Drafter> make_drafter(int kind, const Model& model, const std::vector<Ids>& texts) {
  if (kind == 0) return std::make_unique<HeadDrafter>(model);
  if (kind == 1) return std::make_unique<Oracle>(texts);
  if (kind == 2) return std::make_unique<Liar>();
  return std::make_unique<Half>(texts);
}
constexpr const char* kDrafters[] = {"head", "oracle", "liar", "half"};

class MlxLossless : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(MlxLossless, IdsArePlainDecodingsUpToATie) {
  const auto [name, sampling_index] = GetParam();
  Subject& files = subject(name);
  ASSERT_TRUE(files.is_present()) << files.folder() << " is not there";
  const Model& model = mlx_model(name);
  DecodeOptions options;
  options.max_tokens = files.is_trained() ? 12 : 20;  // BLAS of the wheel is slow, so trained models run little
  options.sampling = sampling(sampling_index);
  if (!options.sampling.greedy()) options.sampling.seed = static_cast<std::uint64_t>(70 + sampling_index);
  std::vector<Truth> truths;
  for (const int length : {5, files.is_trained() ? 24 : 65}) truths.emplace_back(model, files.prompt(length), options);

  Comparison comparison;
  long drafted = 0, accepted = 0;
  const int depths[] = {1, 2, 3, 5, 8};
  for (int drafter = 0; drafter < 4; ++drafter) {
    for (int i = 0; i < (files.is_trained() ? 2 : 4); ++i) {
      const int depth = depths[static_cast<std::size_t>(i + drafter + sampling_index) % 5], chunk = i % 2 == 0 ? 0 : 7;
      const Truth& truth = truths[static_cast<std::size_t>(i + drafter) % 2];
      options.depth = depth;
      Witness witness(model);
      const auto proposes = make_drafter(drafter, witness.model, {truth.text});
      const Generation result = decode(witness.model, proposes.get(), truth.prompt, options, chunk);
      ASSERT_EQ(result.finish, Finish::length);
      comparison.add(result.ids, truth, options.sampling, witness,
          fmt::format("depth {}, chunk {}, {}, prompt of {}", depth, chunk, kDrafters[drafter], truth.prompt.size()));
      if (drafter == 1) {
        drafted += result.stats.drafted.front();
        accepted += result.stats.accepted.front();
      }
    }
  }
  EXPECT_GT(accepted, drafted / 2);  // or nothing was put to the test
  comparison.finish();
}

INSTANTIATE_TEST_SUITE_P(Random, MlxLossless,
    ::testing::Combine(::testing::Values("tiny_tied", "tiny_hybrid", "tiny_hybrid_4bit", "random_qwen3_5"),
        ::testing::Values(0, 1, 5, 6)),
    [](const auto& test) { return fmt::format("{}_{}", std::get<0>(test.param), std::get<1>(test.param)); });
INSTANTIATE_TEST_SUITE_P(Trained, MlxLossless,
    ::testing::Combine(::testing::Values("trained", "trained_4bit"), ::testing::Values(0, 4)),
    [](const auto& test) { return fmt::format("{}_{}", std::get<0>(test.param), std::get<1>(test.param)); });

// Sequences of different depths, samplers and lengths that join a running round one after another.
TEST(MlxRounds, SequencesThatShareRoundsKeepTheirIds) {
  for (const std::string name : {"tiny_hybrid", "trained"}) {
    const Model& model = mlx_model(name);
    const int depths[] = {0, 3, 8, 1}, lengths[] = {5, 33, 1, 20};
    std::vector<Truth> truths;
    std::vector<DecodeOptions> requests;
    std::vector<Ids> texts;
    for (int i = 0; i < 4; ++i) {
      DecodeOptions options;
      options.max_tokens = 8 + 2 * i;
      options.sampling = sampling(i);
      if (i > 0) options.sampling.seed = static_cast<std::uint64_t>(i);
      truths.emplace_back(model, subject(name).prompt(lengths[i], static_cast<std::uint32_t>(i)), options);
      texts.push_back(truths.back().text);
      options.depth = depths[i];
      requests.push_back(options);
    }
    Comparison comparison;
    for (const int kind : {0, 3}) {
      Witness witness(model);
      const auto drafter = make_drafter(kind, witness.model, texts);
      std::vector<std::unique_ptr<Sequence>> sequences;
      std::vector<Sequence*> running;
      for (std::size_t i = 0; i < 4; ++i) {
        sequences.push_back(std::make_unique<Sequence>(witness.model, truths[i].prompt, requests[i]));
        running.push_back(sequences.back().get());
        prefill(witness.model, drafter.get(), *sequences.back(), 16);
        round(witness.model, drafter.get(), running);
      }
      for (int i = 0; i < 16; ++i) round(witness.model, drafter.get(), running);
      for (std::size_t i = 0; i < 4; ++i) {
        ASSERT_EQ(sequences[i]->finish, Finish::length);
        const Ids ids(sequences[i]->tokens.begin() + sequences[i]->prompt_length, sequences[i]->tokens.end());
        comparison.add(ids, truths[i], requests[i].sampling, witness,
            fmt::format("{}, {}, sequence {}", name, kDrafters[kind], i), sequences[i]->caches.get());
      }
    }
    comparison.finish();
  }
}

TEST(TiePolicy, TellsATieFromAWrongChoice) {
  const std::vector<float> logits = {2.0f, 5.0f, 4.9995f, 4.0f};
  EXPECT_LE(deciding_gap(logits, {}, 0, 1, 2), kTau);
  EXPECT_GT(deciding_gap(logits, {}, 0, 1, 3), kTau);

  SamplingOptions sampled = {.temperature = 1, .top_k = 2, .seed = 3};
  EXPECT_GT(deciding_gap(logits, sampled, 0, 1, 3), kTau);  // far behind the border of top-k
  const std::vector<float> border = {2.0f, 5.0f, 4.0005f, 4.0f};
  EXPECT_LE(deciding_gap(border, sampled, 0, 1, 3), kTau);
  sampled.top_k = 0;
  // Without a filter it is noise that decides: the chosen id is the one of the higher score, by far more than a tie.
  const auto chosen = KeyedChance(KeyedNoise(3)).draw(shape(logits, sampled), 0, Purpose::draw);
  for (TokenId other = 0; other < 4; ++other) {
    if (other == chosen) continue;
    EXPECT_GT(deciding_gap(logits, sampled, 0, chosen, other), kTau) << other;
  }
  EXPECT_EQ(first_difference(Ids{1, 2, 3}, Ids{1, 2, 3}), -1);
  EXPECT_EQ(first_difference(Ids{1, 2, 3}, Ids{1, 9, 3}), 1);
  EXPECT_EQ(first_difference(Ids{1, 2}, Ids{1, 2, 3}), 2);
}

}  // namespace
}  // namespace foresay
