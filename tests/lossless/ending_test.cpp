// How sequences end: stops in mid-block, the context, max_tokens, cancellation, refusals, and logits that are not
// finite.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>

#include "base/error.h"
#include "decode/prefill.h"
#include "decode/round.h"
#include "lossless/subject.h"

namespace foresay {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

void run_to_end(const Model& model, Drafter* drafter, Sequence& sequence, int chunk = 0) {
  prefill(model, drafter, sequence, chunk);
  Sequence* const one[] = {&sequence};
  while (sequence.finish == Finish::running) round(model, drafter, one);
}

/// Feeds the last token to the caches as the next turn would and compares with a cold pass over all tokens.
::testing::AssertionResult continues_as_cold(const Model& model, Sequence& sequence) {
  if (sequence.caches->length() != static_cast<int>(sequence.tokens.size()) - 1) {
    return ::testing::AssertionFailure() << "the caches hold " << sequence.caches->length() << " positions of "
                                         << sequence.tokens.size() << " tokens";
  }
  const Evaluation cold = evaluate(model, sequence.tokens, 0);
  Pass pass;
  pass.tokens = {sequence.tokens.back()};
  pass.slices = {{0, 1, sequence.caches.get(), false}};
  pass.logit_rows = {0};
  const Forward forward = model.forward(pass);
  Ops& ops = model.ops();
  const int last = cold.positions - 1;
  if (!same_bits(ops.read(forward.pre_norm), row(cold.hidden_pre_norm, last, cold.hidden)))
    return ::testing::AssertionFailure() << "hidden states differ";
  if (!same_bits(ops.read(forward.logits), row(cold.logits, last, cold.vocab)))
    return ::testing::AssertionFailure() << "logits differ";
  return ::testing::AssertionSuccess();
}

class Ending : public SubjectTest {
 protected:
  [[nodiscard]] const Model& model() const { return subject_().model(); }

  /// A sampled text: unlike a greedy one of a random model it does not repeat itself at once.
  [[nodiscard]] DecodeOptions sampled(int max_tokens) const {
    DecodeOptions options;
    options.sampling = sampling(4);
    options.sampling.seed = 5;
    options.max_tokens = max_tokens;
    return options;
  }
};

// B85, B86, B110: nothing behind a stop stays in the caches, wherever in an accepted block it stands.
TEST_P(Ending, AStopIdInMidBlockLeavesNothingBehindItself) {
  for (const int length : {5, 60}) {  // with 60 the block crosses a page
    DecodeOptions options = sampled(20);
    const Truth truth(model(), subject_().prompt(length), options);
    options.depth = 3;
    for (int stop = 0; stop < 9; ++stop) {  // the prompt's own token, then two blocks of four
      const TokenId id = truth.ids[static_cast<std::size_t>(stop)];
      const int first = static_cast<int>(std::ranges::find(truth.ids, id) - truth.ids.begin());
      TokenId unused = 0;
      while (std::ranges::count(truth.ids, unused) > 0) ++unused;
      options.stop_ids = {unused, id};
      Oracle oracle({truth.text});
      Sequence sequence(model(), truth.prompt, options);
      run_to_end(model(), &oracle, sequence);
      EXPECT_EQ(sequence.finish, Finish::stop);
      EXPECT_EQ(sequence.generated(), first + 1);
      EXPECT_EQ(sequence.stats.generated, first + 1);
      EXPECT_EQ(sequence.stats.passes, (first + 3) / 4);
      EXPECT_TRUE(std::equal(sequence.tokens.begin(), sequence.tokens.end(), truth.text.begin()));
      EXPECT_TRUE(continues_as_cold(model(), sequence)) << "stop at generated token " << first << ", prompt " << length;
    }
  }
}

TEST_P(Ending, ACallerThatStopsInMidBlockLeavesNothingBehindTheStop) {
  DecodeOptions options = sampled(20);
  const Truth truth(model(), subject_().prompt(60), options);
  for (const int depth : {0, 3, 8}) {
    options.depth = depth;
    for (int stop = 1; stop <= 9; ++stop) {
      Oracle oracle({truth.text});
      Sequence sequence(model(), truth.prompt, options);
      int seen = 0;
      sequence.on_token = [&](TokenId id) {
        EXPECT_EQ(id, truth.ids[static_cast<std::size_t>(seen)]);
        return ++seen == stop;
      };
      run_to_end(model(), &oracle, sequence);
      EXPECT_EQ(sequence.finish, Finish::stop);
      EXPECT_EQ(sequence.generated(), stop);
      EXPECT_EQ(seen, stop);  // nothing is shown behind the stop
      EXPECT_TRUE(continues_as_cold(model(), sequence)) << "depth " << depth << ", stop after " << stop;
    }
  }
}

// The real head, at every length: whatever it drafted behind the end is gone.
TEST_P(Ending, CachesEndWithTheTextAtEveryLength) {
  for (int max_tokens = 1; max_tokens <= 12; ++max_tokens) {
    DecodeOptions options = sampled(max_tokens);
    const Truth truth(model(), subject_().prompt(60), options);
    options.depth = 8;
    HeadDrafter head(model());
    Sequence sequence(model(), truth.prompt, options);
    run_to_end(model(), &head, sequence, 7);
    EXPECT_EQ(sequence.finish, Finish::length);
    EXPECT_EQ(sequence.tokens, truth.text);
    EXPECT_TRUE(continues_as_cold(model(), sequence)) << max_tokens << " tokens";
  }
}

TEST_P(Ending, FewerTokensThanADraft) {
  for (const int sampling_index : {0, 4}) {
    for (int max_tokens = 1; max_tokens <= 3; ++max_tokens) {
      DecodeOptions options;
      options.sampling = sampling(sampling_index);
      if (sampling_index > 0) options.sampling.seed = 6;
      options.max_tokens = max_tokens;
      const Truth truth(model(), subject_().prompt(5), options);
      ASSERT_EQ(static_cast<int>(truth.ids.size()), max_tokens);
      options.depth = 8;
      HeadDrafter head(model());
      Oracle oracle({truth.text});
      Liar liar;
      for (Drafter* drafter : std::initializer_list<Drafter*>{&head, &oracle, &liar}) {
        Witness witness(model());
        const Generation result = decode(witness.model, drafter, truth.prompt, options);
        EXPECT_EQ(result.ids, truth.ids);
        EXPECT_EQ(result.finish, Finish::length);
        // No row is run whose token could not be emitted.
        EXPECT_LE(witness.last_position(), static_cast<int>(truth.text.size()) - 2);
      }
    }
  }
}

// B88: what only drafting needs is there only when drafting.
TEST_P(Ending, DepthZeroCostsWhatAModelWithoutAHeadCosts) {
  const Loaded headless = subject_().headless();
  EXPECT_EQ(headless.model->info().max_depth, 0);
  DecodeOptions options;
  options.max_tokens = 10;
  options.depth = 0;
  const Ids prompt = subject_().prompt(63);
  HeadDrafter head(model());
  Sequence with(model(), prompt, options), without(*headless.model, prompt, options);
  run_to_end(model(), &head, with);
  run_to_end(*headless.model, nullptr, without);
  EXPECT_EQ(with.tokens, without.tokens);
  EXPECT_EQ(with.draft_state, nullptr);
  EXPECT_EQ(with.caches->bytes(), without.caches->bytes());
  // The same without a drafter at any depth asked for.
  options.depth = 3;
  Sequence drafterless(model(), prompt, options);
  run_to_end(model(), nullptr, drafterless);
  EXPECT_EQ(drafterless.tokens, with.tokens);
  EXPECT_EQ(drafterless.draft_state, nullptr);
  EXPECT_EQ(drafterless.caches->bytes(), without.caches->bytes());
}

// B104: the run ends with an error that names the token, and the model goes on with the next request.
TEST_P(Ending, LogitsThatAreNotFiniteEndTheSequenceWithAnError) {
  DecodeOptions options;
  options.max_tokens = 16;
  const Truth truth(model(), subject_().prompt(5), options);
  for (const float poison : {kNaN, std::numeric_limits<float>::infinity()}) {
    for (const int depth : {0, 3, 8}) {
      for (const int token : {0, 10}) {
        options.depth = depth;
        ScriptedModel poisoned(model());
        poisoned.on_logits = [&](const ScriptedModel::Row& row, std::span<float> logits) {
          if (row.position == 5 - 1 + token) logits[3] = poison;
        };
        HeadDrafter head(poisoned);
        Oracle oracle({truth.text});
        for (Drafter* drafter : std::initializer_list<Drafter*>{&head, &oracle}) {
          const Generation result = decode(poisoned, drafter, truth.prompt, options);
          EXPECT_EQ(result.finish, Finish::error);
          EXPECT_NE(result.problem.find(fmt::format("token {}:", token)), std::string::npos) << result.problem;
          EXPECT_NE(result.problem.find("id 3"), std::string::npos) << result.problem;
          // A prefix of the truth; never the poisoned token or anything behind it.
          EXPECT_LE(static_cast<int>(result.ids.size()), token);
          EXPECT_TRUE(std::equal(result.ids.begin(), result.ids.end(), truth.ids.begin()));
          EXPECT_EQ(decode(model(), drafter, truth.prompt, options).ids, truth.ids);
        }
      }
    }
  }
}

TEST_P(Ending, RejectedRowsThatAreNotFiniteAreNotLookedAt) {
  DecodeOptions options = sampled(24);
  const Truth truth(model(), subject_().prompt(5), options);
  int poisoned_rows = 0;
  ScriptedModel poisoned(model());
  poisoned.on_logits = [&](const ScriptedModel::Row& row, std::span<float> logits) {
    const auto at = static_cast<std::size_t>(row.position);
    if (at < truth.text.size() && row.token == truth.text[at]) return;
    std::ranges::fill(logits, kNaN);
    ++poisoned_rows;
  };
  options.depth = 3;
  Half half({truth.text});
  Liar liar;
  for (Drafter* drafter : std::initializer_list<Drafter*>{&half, &liar}) {
    poisoned_rows = 0;
    const Generation result = decode(poisoned, drafter, truth.prompt, options);
    EXPECT_EQ(result.finish, Finish::length) << result.problem;
    EXPECT_EQ(result.ids, truth.ids);
    EXPECT_GT(poisoned_rows, 10);
  }
}

// One sequence of a shared round is poisoned; the others do not notice.
TEST_P(Ending, APoisonedSequenceLeavesItsNeighboursAlone) {
  DecodeOptions options = sampled(16);
  std::vector<Truth> truths;
  for (const int length : {5, 9, 63}) truths.emplace_back(model(), subject_().prompt(length), options);
  options.depth = 3;
  ScriptedModel poisoned(model());
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<Sequence*> all;
  HeadDrafter head(poisoned);
  for (const Truth& truth : truths) {
    sequences.push_back(std::make_unique<Sequence>(poisoned, truth.prompt, options));
    all.push_back(sequences.back().get());
  }
  const CacheSet* const victim = sequences[1]->caches.get();
  poisoned.on_logits = [&](const ScriptedModel::Row& row, std::span<float> logits) {
    if (row.caches == victim && row.position == 8 + 6) logits.back() = kNaN;
  };
  for (Sequence* sequence : all) prefill(poisoned, &head, *sequence, 0);
  for (int i = 0; i < 16; ++i) round(poisoned, &head, all);
  EXPECT_EQ(all[0]->tokens, truths[0].text);
  EXPECT_EQ(all[1]->finish, Finish::error);
  EXPECT_EQ(all[1]->caches, nullptr);  // its state is not to be used again
  EXPECT_NE(all[1]->problem.find("token 6:"), std::string::npos) << all[1]->problem;
  EXPECT_EQ(all[2]->tokens, truths[2].text);
}

// A head that is broken costs speed, never the answer.
TEST_P(Ending, ABrokenHeadDoesNotChangeTheAnswer) {
  for (const int sampling_index : {0, 4}) {
    DecodeOptions options;
    options.sampling = sampling(sampling_index);
    if (sampling_index > 0) options.sampling.seed = 8;
    options.max_tokens = 16;
    const Truth truth(model(), subject_().prompt(5), options);
    options.depth = 3;
    ScriptedModel broken(model());
    int row = 0;
    broken.on_draft_logits = [&](std::span<float> logits) {
      if (++row % 3 != 1) logits[7] = row % 2 == 0 ? kNaN : std::numeric_limits<float>::infinity();
    };
    HeadDrafter head(broken);
    const Generation result = decode(broken, &head, truth.prompt, options);
    EXPECT_EQ(result.ids, truth.ids);
    EXPECT_EQ(result.finish, Finish::length);
    EXPECT_GT(result.stats.drafted.front(), 0);
    EXPECT_LT(result.stats.drafted.front(), result.stats.passes);
  }
}

TEST_P(Ending, CancellationIsNoticedBetweenPasses) {
  DecodeOptions options;
  options.max_tokens = 40;
  const Truth truth(model(), subject_().prompt(65), options);
  options.depth = 3;
  HeadDrafter head(model());
  GenerateRequest request;
  request.prompt = truth.prompt;
  request.options = options;
  request.prefill_chunk = 16;  // 5 chunks
  std::atomic<bool> cancel{true};
  request.cancel = &cancel;

  ScriptedModel watched(model());
  int passes = 0, cancel_at = 0;
  watched.before_pass = [&](const Pass&) {
    if (++passes == cancel_at) cancel = true;
  };
  const auto run = [&](bool at_once, int at) {
    cancel = at_once;
    passes = 0;
    cancel_at = at;
    return generate(watched, &head, request);
  };

  Generation result = run(true, 0);
  EXPECT_EQ(result.finish, Finish::cancelled);
  EXPECT_TRUE(result.ids.empty());
  EXPECT_EQ(passes, 0);

  result = run(false, 2);  // between chunks
  EXPECT_EQ(result.finish, Finish::cancelled);
  EXPECT_TRUE(result.ids.empty());
  EXPECT_EQ(passes, 2);

  result = run(false, 5);  // in the prompt's last chunk, which still gives its token
  EXPECT_EQ(result.finish, Finish::cancelled);
  EXPECT_EQ(result.ids.size(), 1u);
  EXPECT_EQ(passes, 5);

  result = run(false, 8);
  EXPECT_EQ(result.finish, Finish::cancelled);
  EXPECT_GE(result.ids.size(), 4u);
  EXPECT_LT(result.ids.size(), 40u);
  EXPECT_TRUE(std::equal(result.ids.begin(), result.ids.end(), truth.ids.begin()));
  EXPECT_EQ(passes, 8);

  result = run(false, 0);
  EXPECT_EQ(result.finish, Finish::length);
  EXPECT_EQ(result.ids, truth.ids);
}

INSTANTIATE_TEST_SUITE_P(, Ending, ::testing::ValuesIn(kSubjects), [](const auto& test) { return test.param; });

// --- A context of 64 positions ---------------------------------------------------------------------------------------

class SmallContext : public ::testing::Test {
 protected:
  SmallContext() : loaded_(written(), 1), model_(*loaded_.model) {}

  [[nodiscard]] Ids prompt(int length) const { return subject("tiny_hybrid").prompt(length); }

  TempDir folder_;
  Loaded loaded_;
  const Model& model_;

 private:
  std::filesystem::path written() {
    auto options = tiny_hybrid();
    options.context = 64;
    return write_tiny(folder_.path(), options);
  }
};

// B26: drafting stops where it no longer fits.
TEST_F(SmallContext, NothingIsRunPastIt) {
  for (const int length : {58, 55, 62, 63}) {
    for (const int max_tokens : {6, 100}) {
      for (const int sampling_index : {0, 4}) {
        DecodeOptions options;
        options.sampling = sampling(sampling_index);
        if (sampling_index > 0) options.sampling.seed = 2;
        options.max_tokens = max_tokens;
        options.top_logprobs = 0;
        const Truth truth(model_, prompt(length), options);
        EXPECT_EQ(static_cast<int>(truth.ids.size()), std::min(max_tokens, 64 - length));
        options.depth = 0;
        const Generation plain = decode(model_, nullptr, truth.prompt, options);
        for (const int depth : {3, 8}) {
          options.depth = depth;
          HeadDrafter head(model_);
          Oracle oracle({truth.text});
          Liar liar;
          for (Drafter* drafter : std::initializer_list<Drafter*>{&head, &oracle, &liar}) {
            Witness witness(model_);
            const Generation result = decode(witness.model, drafter, truth.prompt, options);
            EXPECT_EQ(result.ids, truth.ids);
            EXPECT_EQ(result.finish, Finish::length);
            EXPECT_TRUE(std::ranges::equal(result.log_probabilities, plain.log_probabilities, {},
                &TokenLogProbabilities::value, &TokenLogProbabilities::value));
            EXPECT_TRUE(witness.equals(truth));
            EXPECT_LT(witness.last_position(), 63);  // the last token of the context is emitted, never run
          }
        }
      }
    }
  }
}

template <typename Action>
void expect_usage(const std::string& part, const Action& action) {
  try {
    action();
    ADD_FAILURE() << "expected a usage error about " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST_F(SmallContext, APromptThatFillsItIsRefused) {
  expect_usage("64", [&] { (void)decode(model_, nullptr, prompt(64), {}); });
  expect_usage("65", [&] { (void)decode(model_, nullptr, prompt(65), {}); });
  EXPECT_EQ(decode(model_, nullptr, prompt(63), {}).ids.size(), 1u);
}

TEST_F(SmallContext, OptionsOutOfRangeAreRefused) {
  const auto refused = [&](const std::string& part, const auto& change, Ids ids = {1, 2, 3}) {
    DecodeOptions options;
    change(options);
    expect_usage(part, [&] { (void)decode(model_, nullptr, ids, options); });
  };
  const auto nothing = [](DecodeOptions&) {};
  refused("depth", [](auto& o) { o.depth = -1; });
  refused("depth", [](auto& o) { o.depth = 9; });
  refused("max-tokens", [](auto& o) { o.max_tokens = 0; });
  refused("max-tokens", [](auto& o) { o.max_tokens = -5; });
  refused("temperature", [](auto& o) { o.sampling.temperature = static_cast<double>(kNaN); });
  refused("temperature", [](auto& o) { o.sampling.temperature = -0.5; });
  refused("top-k", [](auto& o) { o.sampling.top_k = -1; });
  refused("top-p", [](auto& o) { o.sampling.top_p = 0; });
  refused("min-p", [](auto& o) { o.sampling.min_p = 1; });
  refused("empty", nothing, Ids{});
  refused("-1", nothing, {3, -1});
  refused("256", nothing, {256, 3});
}

// --- Damaged heads on disk -------------------------------------------------------------------------------------------

TEST(DamagedHead, NaNInTheFusionMatrixDoesNotChangeTheAnswer) {
  Subject& hybrid = subject("tiny_hybrid");
  DecodeOptions options;
  options.max_tokens = 16;
  const Truth truth(hybrid.model(), hybrid.prompt(5), options);
  const TempDir folder;
  write_tiny(folder.path(), tiny_hybrid());
  edit_tensors(
      folder.path() / "model.safetensors", [](TensorMap& tensors) { tensors.at("mtp.fc.weight").set(70, kNaN); });
  const Loaded damaged(folder.path(), 1);
  ASSERT_GT(damaged.model->info().max_depth, 0);
  for (const int depth : {1, 3, 8}) {
    options.depth = depth;
    HeadDrafter head(*damaged.model);
    const Generation result = decode(*damaged.model, &head, truth.prompt, options);
    EXPECT_EQ(result.ids, truth.ids);
    EXPECT_EQ(result.finish, Finish::length);
    EXPECT_EQ(result.stats.drafted.front(), 0);
  }
}

}  // namespace
}  // namespace foresay
