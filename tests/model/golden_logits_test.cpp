// The trunk's and the head's numbers against reference implementations.
#include <gtest/gtest.h>

#include <algorithm>

#include "decode/evaluate.h"
#include "fixtures/golden.h"

namespace foresay {
namespace {

/// Goldens hold three draft steps per row, which read three tokens past it.
constexpr int kSteps = 3;

class GoldenLogits : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_close(std::span<const float> got, const std::string& tensor, const std::string& kind) {
    const double worst = max_abs(got, golden_.tensors.at(tensor));
    RecordProperty("max_abs_" + test_name(tensor), std::to_string(worst));
    EXPECT_LE(worst, golden_.tolerance.at(kind).get<double>()) << tensor;
  }

  const GoldenPrompt golden_ = read_golden(GetParam());
  const OpenedModel model_{golden_.checkpoint};
};

TEST_P(GoldenLogits, MatchTheReferenceAtAnyPrefillChunk) {
  const auto ids = golden_.continued(kSteps);
  const Evaluation whole = evaluate(*model_, ids, kSteps);
  expect_close(rows_at(whole.logits, whole.vocab, golden_.positions), "logits", "logits");
  expect_close(rows_at(whole.hidden_pre_norm, whole.hidden, golden_.positions), "hidden_pre_norm", "hidden_pre_norm");
  expect_close(
      rows_at(whole.hidden_post_norm, whole.hidden, golden_.positions), "hidden_post_norm", "hidden_post_norm");
  ASSERT_EQ(whole.mtp_logits.size(), static_cast<std::size_t>(kSteps));
  for (int step = 1; step <= kSteps; ++step) {
    const auto& logits = whole.mtp_logits[static_cast<std::size_t>(step - 1)];
    expect_close(rows_at(logits, whole.vocab, golden_.positions), "mtp_logits." + std::to_string(step), "mtp_logits");
  }
  if (golden_.tensors.count("logits_float32") > 0) {  // mlx-lm itself, on the packed weights
    expect_close(rows_at(whole.logits, whole.vocab, golden_.positions), "logits_float32", "logits");
  }
  for (const int chunk : {7, 64}) {  // identical: a row does not depend on the rows it shares a pass with
    const Evaluation chunked = evaluate(*model_, ids, 0, chunk);
    EXPECT_EQ(chunked.logits, whole.logits) << chunk;
    EXPECT_EQ(chunked.hidden_pre_norm, whole.hidden_pre_norm) << chunk;
    EXPECT_EQ(chunked.hidden_post_norm, whole.hidden_post_norm) << chunk;
  }
}

INSTANTIATE_TEST_SUITE_P(Trained, GoldenLogits, ::testing::ValuesIn(golden_names(kTrainedGoldens)),
    [](const auto& test) { return test_name(test.param); });
INSTANTIATE_TEST_SUITE_P(Random, GoldenLogits, ::testing::ValuesIn(golden_names(kRandomGoldens)),
    [](const auto& test) { return test_name(test.param); });

class GoldenHead : public GoldenLogits {};

TEST_P(GoldenHead, HandsOnTheReferencesStates) {
  const auto ids = golden_.continued(kSteps);
  std::vector<std::vector<TokenId>> tokens;
  for (const int t : golden_.positions) tokens.emplace_back(ids.begin() + t + 1, ids.begin() + t + 1 + kSteps);
  const HeadRows rows = run_head(*model_, ids, golden_.positions, tokens);
  for (int step = 1; step <= kSteps; ++step) {
    const auto at = static_cast<std::size_t>(step - 1);
    expect_close(rows.logits[at], "mtp_logits." + std::to_string(step), "mtp_logits");
    const std::string hidden = "mtp_hidden." + std::to_string(step);
    if (golden_.tensors.count(hidden) == 0) continue;
    expect_close(rows.recycled[at], hidden, "mtp_hidden");
  }
}

class GoldenDrafts : public GoldenLogits {};

TEST_P(GoldenDrafts, AreTheReferences) {
  const auto drafts = golden_.json.at("draft_tokens").get<std::vector<std::vector<TokenId>>>();
  const auto gaps = golden_.json.at("draft_top2_gap").get<std::vector<std::vector<double>>>();
  std::vector<std::vector<TokenId>> read;  // the last draft is read by nobody
  for (const auto& row : drafts) read.emplace_back(row.begin(), row.begin() + kSteps);
  const HeadRows rows = run_head(*model_, golden_.continued(kSteps), golden_.positions, read);
  for (std::size_t step = 0; step < kSteps; ++step) {
    expect_close(rows.logits[step], "draft_logits." + std::to_string(step + 1), "draft_logits");
    const std::size_t vocab = rows.logits[step].size() / drafts.size();
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      if (gaps[i][step] < golden_.tie) continue;
      const auto row = rows.logits[step].begin() + static_cast<std::ptrdiff_t>(i * vocab);
      const auto best = std::max_element(row, row + static_cast<std::ptrdiff_t>(vocab));
      EXPECT_EQ(best - row, drafts[i][step + 1]) << "position " << golden_.positions[i] << " step " << step + 1;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, GoldenHead, ::testing::ValuesIn(golden_names(kRandomGoldens)),
    [](const auto& test) { return test_name(test.param); });

INSTANTIATE_TEST_SUITE_P(, GoldenDrafts,
    ::testing::ValuesIn(golden_names({"random/qwen3_5", "random/qwen3_5_moe", "random/qwen3_next", "random/step3p5"})),
    [](const auto& test) { return test_name(test.param); });

}  // namespace
}  // namespace foresay
