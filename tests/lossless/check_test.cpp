// check_lossless(), which `foresay verify` runs: it passes where drafting changes nothing, and fails where a model or a
// drafter was broken on purpose.
#include "decode/lossless/lossless.h"

#include "foresay/error.h"
#include "lossless/subject.h"

namespace foresay {
namespace {

LosslessOptions quick() {
  LosslessOptions options;
  options.depths = {1, 3, 8};
  options.max_tokens = 16;
  options.samplers = 4;
  options.seeds = 1;
  options.ratio_prompts = 1;
  options.ratio_rounds = 300;
  return options;
}

std::vector<LosslessPrompt> prompts_of(Subject& subject) {
  return {{"a", subject.prompt(12)}, {"b", subject.prompt(65, 1)}, {"c", subject.prompt(5, 2)}};
}

std::vector<std::string> names(const std::vector<LosslessCheck>& checks) {
  std::vector<std::string> all;
  for (const auto& check : checks) all.push_back(check.name);
  return all;
}

const LosslessCheck& find(const std::vector<LosslessCheck>& checks, const std::string& name) {
  return *std::ranges::find(checks, name, &LosslessCheck::name);
}

/// A model of the suite that a test may break, with a head that drafts from what is left of it.
class LosslessCheckTest : public ::testing::Test {
 protected:
  std::vector<LosslessCheck> check(const LosslessOptions& options = quick()) {
    return check_lossless(model_, drafter_, prompts_, options);
  }
  /// Changes the target's logits in passes that `concerns`.
  void break_passes(std::function<bool(const Pass&)> concerns, std::function<void(std::span<float>)> change) {
    model_.before_pass = [this, concerns = std::move(concerns)](const Pass& pass) { concerned_ = concerns(pass); };
    model_.on_logits = [this, change = std::move(change)](const ScriptedModel::Row&, std::span<float> logits) {
      if (concerned_) change(logits);
    };
  }

  Subject& subject_ = subject("tiny_hybrid");
  ScriptedModel model_{subject_.model()};
  HeadDrafter head_{model_};
  Drafter* drafter_ = &head_;
  std::vector<LosslessPrompt> prompts_ = prompts_of(subject_);
  bool concerned_ = false;
};

class LosslessSubjects : public SubjectTest {};

TEST_P(LosslessSubjects, PassEveryCheck) {
  const Model& model = subject_().model();
  HeadDrafter drafter(model);
  const auto prompts = prompts_of(subject_());
  std::vector<std::string> seen;
  const auto checks = check_lossless(
      model, &drafter, prompts, quick(), [&](const LosslessCheck& check) { seen.push_back(check.name); });
  EXPECT_EQ(seen, (std::vector<std::string>{"greedy", "coupled", "together", "ratio"}));
  EXPECT_TRUE(is_lossless(checks));
  for (const LosslessCheck& check : checks) {
    EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
    EXPECT_GT(check.tokens, 0) << check.name;
    EXPECT_GT(check.rejected, 0) << check.name;
    EXPECT_TRUE(check.accepted > 0 || !subject_().is_trained()) << check.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LosslessSubjects, ::testing::Values("tiny", "tiny_hybrid_4bit", "trained"));

bool has_drafts(const Pass& pass) {
  return std::ranges::any_of(pass.slices, &Slice::provisional);
}

TEST_F(LosslessCheckTest, RowsThatDependOnDraftsFailEveryCheckAndAreNamed) {
  break_passes(has_drafts, [](std::span<float> logits) { logits[5] += 100; });
  const auto checks = check();
  EXPECT_FALSE(is_lossless(checks));
  for (const auto& check : checks) EXPECT_FALSE(check.passed) << check.name;
  const std::string& detail = find(checks, "greedy").detail;
  for (const char* part : {"prompt a, depth 1, generated token 1: id ", "id 5 here", "scores differ by", "more runs"})
    EXPECT_NE(detail.find(part), std::string::npos) << detail;
  EXPECT_NE(find(checks, "coupled").detail.find("sampler 1, seed 1"), std::string::npos);
}

TEST_F(LosslessCheckTest, ChunksThatChangeThePromptFailTheGreedyCheckAlone) {
  break_passes(
      [](const Pass& pass) {
        return pass.slices[0].caches->length() > 0 && !pass.slices[0].provisional && pass.slices[0].count > 1;
      },
      [](std::span<float> logits) { logits[7] += 100; });
  const auto checks = check();
  EXPECT_FALSE(find(checks, "greedy").passed);
  EXPECT_NE(find(checks, "greedy").detail.find("chunks of 7"), std::string::npos) << find(checks, "greedy").detail;
  EXPECT_TRUE(find(checks, "coupled").passed);
}

TEST_F(LosslessCheckTest, NeighboursInABatchThatInterfereFailTheTogetherCheckAlone) {
  break_passes(
      [](const Pass& pass) {
        return pass.slices.size() > 1 && pass.slices.size() <= prompts_of(subject("tiny_hybrid")).size();
      },
      [](std::span<float> logits) { logits[9] += 100; });
  const auto checks = check();
  EXPECT_FALSE(find(checks, "together").passed);
  EXPECT_NE(find(checks, "together").detail.find("beside 2 others"), std::string::npos);
  EXPECT_TRUE(find(checks, "greedy").passed);
  EXPECT_TRUE(find(checks, "coupled").passed);
  EXPECT_TRUE(find(checks, "ratio").passed) << find(checks, "ratio").detail;
}

TEST_F(LosslessCheckTest, ADrafterThatMisstatesItsDistributionFailsTheRatioCheckAlone) {
  Subject& trained = subject("trained");
  const Model& model = trained.model();
  HeadDrafter honest(model);
  // The drafted id seems far less likely than it was, so acceptance keeps nearly all of them.
  Edited liar(honest, [](const Sequence&, int, DraftBlock& block) {
    for (std::size_t i = 0; i < block.tokens.size(); ++i) {
      const auto& ids = block.q[i].ids();
      std::vector<double> p = block.q[i].p();
      if (ids.size() < 2) continue;
      const auto at = static_cast<std::size_t>(std::ranges::find(ids, block.tokens[i]) - ids.begin());
      const double moved = p[at] * (1 - 1e-6);
      p[at] -= moved;
      p[at == 0 ? 1 : 0] += moved;
      block.q[i] = Distribution(ids, std::move(p));
    }
  });
  LosslessOptions options = quick();
  options.max_tokens = 6;
  options.samplers = 1;
  options.ratio_rounds = 400;
  const auto checks = check_lossless(model, &liar, prompts_of(trained), options);
  EXPECT_TRUE(find(checks, "greedy").passed);
  EXPECT_TRUE(find(checks, "coupled").passed);
  EXPECT_TRUE(find(checks, "together").passed);
  EXPECT_FALSE(find(checks, "ratio").passed) << find(checks, "ratio").detail;
  EXPECT_NE(find(checks, "ratio").detail.find("chi-square"), std::string::npos);
}

TEST_F(LosslessCheckTest, ATieMayFallEitherWayWhereALaneSaysSo) {
  // The two highest logits of a drafted row change places, and by how much is known.
  double widest = 0;
  break_passes(has_drafts, [&](std::span<float> logits) {
    auto first = std::ranges::max_element(logits);
    const float highest = *first;
    *first = -1e30f;
    auto second = std::ranges::max_element(logits);
    widest = std::max(widest, double{highest} - double{*second});
    *first = *second;
    *second = highest;
  });
  LosslessOptions options = quick();
  const auto strict = check(options);
  EXPECT_FALSE(find(strict, "greedy").passed);
  options.tie_tolerance = widest * 1.01;
  const auto tolerant = check(options);
  EXPECT_TRUE(find(tolerant, "greedy").passed) << find(tolerant, "greedy").detail;
  EXPECT_NE(find(tolerant, "greedy").detail.find("up to a tie"), std::string::npos) << find(tolerant, "greedy").detail;
  options.tie_tolerance = 1e-9;
  EXPECT_FALSE(find(check(options), "greedy").passed);
}

TEST_F(LosslessCheckTest, WithoutDraftsOnlyChunksAndBatchesAreChecked) {
  drafter_ = nullptr;
  EXPECT_EQ(names(check()), (std::vector<std::string>{"greedy", "together"}));
  prompts_.resize(1);
  const auto checks = check();
  EXPECT_EQ(names(checks), std::vector<std::string>{"greedy"});
  EXPECT_TRUE(is_lossless(checks));
  EXPECT_EQ(checks[0].accepted + checks[0].rejected, 0);
}

TEST_F(LosslessCheckTest, DepthsAreCappedByTheDrafter) {
  Liar liar;
  drafter_ = &liar;
  LosslessOptions options = quick();
  options.depths = {9, 8, 12};
  const auto checks = check(options);
  EXPECT_TRUE(is_lossless(checks));
  EXPECT_NE(checks[0].detail.find("depth 8;"), std::string::npos) << checks[0].detail;
}

template <typename Action>
ErrorCode code_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::internal;
}

TEST_F(LosslessCheckTest, EndsWhereItCannotGoOn) {
  const std::atomic<bool> cancelled{true};
  LosslessOptions options = quick();
  options.cancel = &cancelled;
  EXPECT_EQ(code_of([&] { check(options); }), ErrorCode::cancelled);

  options.cancel = nullptr;
  std::string problem;
  options.on_target_problem = [&](const std::string& text) { problem = text; };
  model_.on_logits = [](const ScriptedModel::Row&, std::span<float> logits) { logits[0] = NAN; };
  EXPECT_EQ(code_of([&] { check(options); }), ErrorCode::internal);
  EXPECT_NE(problem.find("nan"), std::string::npos) << problem;

  prompts_.clear();
  EXPECT_EQ(code_of([&] { check(); }), ErrorCode::usage);
}

}  // namespace
}  // namespace foresay
