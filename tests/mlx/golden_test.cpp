// The MLX lane on MLX's CPU device against the reference implementations.
#include <gtest/gtest.h>

#include <algorithm>

#include "decode/evaluate.h"
#include "decode/generate.h"
#include "fixtures/golden.h"
#include "fixtures/moe_checkpoint.h"
#include "fixtures/step_checkpoint.h"
#include "fixtures/temp_dir.h"

namespace foresay {
namespace {

constexpr int kSteps = 3;
/// Largest absolute difference of logits and hidden states, of scale 20: float32 in another order of sums. Measured
/// against the references 3e-5, and 0 between chunkings; MLX promises neither.
constexpr double kTolerance = 2e-4;

class MlxGolden : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_close(std::span<const float> got, std::span<const float> want, const std::string& what) {
    const double worst = max_abs(got, want);
    RecordProperty("max_abs_" + test_name(what), std::to_string(worst));
    EXPECT_LE(worst, kTolerance) << what;
  }

  const GoldenPrompt golden_ = read_golden(GetParam());
  const OpenedModel model_{golden_.checkpoint, {}, make_mlx_ops(MlxDevice::cpu)};
};

TEST_P(MlxGolden, TrunkAndHeadMatchTheReference) {
  const auto ids = golden_.continued(kSteps);
  const Evaluation whole = evaluate(*model_, ids, kSteps);
  const auto at_positions = [&](const std::vector<float>& values, int width) {
    return rows_at(values, width, golden_.positions);
  };
  expect_close(at_positions(whole.logits, whole.vocab), golden_.tensors.at("logits"), "logits");
  expect_close(at_positions(whole.hidden_pre_norm, whole.hidden), golden_.tensors.at("hidden_pre_norm"), "pre_norm");
  expect_close(at_positions(whole.hidden_post_norm, whole.hidden), golden_.tensors.at("hidden_post_norm"), "post_norm");
  ASSERT_EQ(whole.mtp_logits.size(), static_cast<std::size_t>(kSteps));
  for (int step = 1; step <= kSteps; ++step) {
    const std::string name = "mtp_logits." + std::to_string(step);
    expect_close(at_positions(whole.mtp_logits[static_cast<std::size_t>(step - 1)], whole.vocab),
        golden_.tensors.at(name), name);
  }
  if (golden_.tensors.count("logits_float32") > 0) {  // mlx-lm itself, on the packed weights
    expect_close(at_positions(whole.logits, whole.vocab), golden_.tensors.at("logits_float32"), "mlx_lm");
  }
  const Evaluation chunked = evaluate(*model_, ids, 0, 7);
  expect_close(chunked.logits, whole.logits, "chunked");
}

TEST_P(MlxGolden, GreedyIdsAreTheReferences) {
  GenerateRequest request;
  request.prompt = golden_.ids;
  request.options.max_tokens = 24;
  const Generation result = generate(*model_, nullptr, request);
  const std::size_t count = std::min<std::size_t>(golden_.decided(), 24);
  ASSERT_GT(count, 8u);
  EXPECT_EQ(std::vector(result.ids.begin(), result.ids.begin() + static_cast<std::ptrdiff_t>(count)),
      std::vector(golden_.greedy_ids.begin(), golden_.greedy_ids.begin() + static_cast<std::ptrdiff_t>(count)));
}

// Relative RMS; measured 9e-7 at most.
TEST(MlxLayers, EveryNamedTensorIsTheCpuLanes) {
  for (const char* name : {"tiny-qwen3_5/prompt_01", "quantisation/checkpoints/affine4/short"}) {
    const GoldenPrompt golden = read_golden(name);
    const OpenedModel cpu(golden.checkpoint), mlx(golden.checkpoint, {}, make_mlx_ops(MlxDevice::cpu));
    const Evaluation want = evaluate(*cpu, golden.ids, 2, 0, /*layers=*/true);
    const Evaluation got = evaluate(*mlx, golden.ids, 2, 5, /*layers=*/true);
    ASSERT_EQ(got.layers.size(), want.layers.size());
    double worst = 0;
    for (std::size_t i = 0; i < want.layers.size(); ++i) {
      ASSERT_EQ(got.layers[i].name, want.layers[i].name);
      ASSERT_EQ(got.layers[i].width, want.layers[i].width);
      worst = std::max(worst, relative_rms(got.layers[i].values, want.layers[i].values));
      EXPECT_LE(relative_rms(got.layers[i].values, want.layers[i].values), 1e-5) << want.layers[i].name;
    }
    RecordProperty("worst_" + test_name(name), std::to_string(worst));
  }
}

// Packed mixtures have no golden of their own: both lanes read the same weights.
TEST(MlxPacked, MixturesAndDistinctHeadsAreTheCpuLanes) {
  const TempDir dir;
  for (const auto& folder : {write_moe_4bit(dir.path() / "moe"), write_step_4bit(dir.path() / "step")}) {
    const OpenedModel cpu(folder), mlx(folder, {}, make_mlx_ops(MlxDevice::cpu));
    std::vector<TokenId> ids(40);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i * 37 % 512);
    const Evaluation want = evaluate(*cpu, ids, 3), got = evaluate(*mlx, ids, 3, 7);
    EXPECT_LE(max_abs(got.logits, want.logits), kTolerance) << folder;
    ASSERT_EQ(got.mtp_logits.size(), 3u);
    for (std::size_t step = 0; step < 3; ++step) {
      EXPECT_LE(max_abs(got.mtp_logits[step], want.mtp_logits[step]), kTolerance) << folder << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Trained, MlxGolden,
    ::testing::Values("tiny-qwen3_5/prompt_01", "tiny-qwen3_5/prompt_03", "tiny-qwen3_5-4bit/prompt_00",
        "tiny-qwen3_5-4bit/prompt_03"),
    [](const auto& test) { return test_name(test.param); });
INSTANTIATE_TEST_SUITE_P(Random, MlxGolden, ::testing::ValuesIn(golden_names(kRandomGoldens)),
    [](const auto& test) { return test_name(test.param); });

}  // namespace
}  // namespace foresay
