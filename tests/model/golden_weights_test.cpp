// What a loader can get wrong without an error, on the bundled checkpoints.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "checkpoint/checkpoint.h"
#include "decode/evaluate.h"
#include "fixtures/golden.h"
#include "fixtures/owned_tensor.h"
#include "fixtures/temp_dir.h"

namespace foresay {
namespace {

/// A copy of a bundled checkpoint that has lost its head.
void copy_without_head(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
  if (std::filesystem::remove_all(to / "mtp") == 0) {
    // Step's heads are layers behind the trunk's six.
    const bool step = from.filename() == "tiny-step3p5";
    edit_tensors(to / "model.safetensors", [&](TensorMap& tensors) {
      std::erase_if(tensors, [&](const auto& entry) {
        const bool behind =
            step && std::ranges::any_of(std::array{"layers.6.", "layers.7.", "layers.8."},
                        [&](const char* layer) { return entry.first.find(layer) != std::string::npos; });
        return behind || !head_relative_name(entry.first).empty();
      });
    });
  }
  edit_json(to / "config.json", [](nlohmann::json& config) { config.erase("mlx_lm_extra_tensors"); });
}

class HeadPresence : public ::testing::TestWithParam<std::string> {};

TEST_P(HeadPresence, DoesNotChangeABitOfTheTrunk) {
  const auto folder = bundled_model(GetParam());
  const TempDir dir;
  copy_without_head(folder, dir.path() / "trunk");
  const OpenedModel with(folder), without(dir.path() / "trunk"), off(folder, {.mtp = MtpMode::off, .contract = {}});
  ASSERT_EQ(with->info().head_layers, GetParam() == "tiny-step3p5" ? 3 : 1);
  ASSERT_EQ(without->info().head_layers, 0);
  ASSERT_EQ(off->info().head_layers, 0);
  EXPECT_EQ(with->contract().trunk_norms.value, without->contract().trunk_norms.value);

  const GoldenPrompt golden = read_golden(GetParam() + "/prompt_03");
  const Evaluation expected = evaluate(*with, golden.ids, 0);
  for (const OpenedModel* model : {&without, &off}) {
    const Evaluation got = evaluate(**model, golden.ids, 0);
    EXPECT_EQ(got.logits, expected.logits);
    EXPECT_EQ(got.hidden_pre_norm, expected.hidden_pre_norm);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , HeadPresence, ::testing::ValuesIn(kTrainedGoldens), [](const auto& test) { return test_name(test.param); });

TEST(TiedEmbeddings, LogitsAreHiddenTimesEmbeddingTransposed) {
  const auto folder = bundled_model("tiny-qwen3_5");
  Report report;
  const auto checkpoint = Checkpoint::open(folder, report);
  ASSERT_EQ(checkpoint.trunk().count("lm_head.weight"), 0u);
  const std::vector<float> embedding = checkpoint.trunk().at("model.language_model.embed_tokens.weight").to_float();

  const OpenedModel model(folder);
  const GoldenPrompt golden = read_golden("tiny-qwen3_5/prompt_04");
  const Evaluation evaluation = evaluate(*model, golden.ids, 0);
  const auto width = static_cast<std::size_t>(evaluation.hidden), vocab = static_cast<std::size_t>(evaluation.vocab);
  ASSERT_EQ(embedding.size(), vocab * width);
  for (const std::size_t t : {std::size_t{0}, golden.ids.size() - 1}) {
    std::vector<float> product(vocab);
    for (std::size_t id = 0; id < vocab; ++id) {
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i)
        sum += double{evaluation.hidden_post_norm[t * width + i]} * double{embedding[id * width + i]};
      product[id] = static_cast<float>(sum);
    }
    // Within 1e-4: 256 terms summed in float32, results near 20.
    EXPECT_LE(max_abs(std::span(evaluation.logits).subspan(t * vocab, vocab), product), 1e-4) << "position " << t;
  }

  double nats = 0;  // a matrix that is not bound gives ln(4096) = 8.3 a token; the trained one is near 3.3
  for (std::size_t t = 0; t + 1 < golden.ids.size(); ++t) {
    const auto row = std::span(evaluation.logits).subspan(t * vocab, vocab);
    double sum = 0;
    for (const float logit : row) sum += std::exp(double{logit});
    nats += std::log(sum) - double{row[static_cast<std::size_t>(golden.ids[t + 1])]};
  }
  EXPECT_LT(nats / static_cast<double>(golden.ids.size() - 1), 5);
}

}  // namespace
}  // namespace foresay
