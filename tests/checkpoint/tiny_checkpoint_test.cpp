#include "fixtures/tiny_checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/checkpoint.h"
#include "checkpoint/quantisation.h"

namespace foresay {
namespace {

Checkpoint open(const std::filesystem::path& folder) {
  Report report;
  auto checkpoint = Checkpoint::open(folder, report);
  EXPECT_TRUE(report.warnings().empty());
  return checkpoint;
}

TinyOptions with_layout(TinyOptions options, TinyOptions::Layout layout) {
  options.layout = layout;
  return options;
}

TEST(TinyCheckpoint, BothLayoutsHoldTheSameModel) {
  const TempDir dir;
  const auto raw = open(write_tiny(dir.path() / "hf", tiny_hybrid()));
  const auto mlx = open(write_tiny(dir.path() / "mlx", with_layout(tiny_hybrid(), TinyOptions::Layout::mlx)));
  ASSERT_EQ(raw.trunk().size(), mlx.trunk().size());
  const auto twin = [&](const std::string& name) -> const TensorView& {
    if (name == "lm_head.weight") return mlx.trunk().at("language_model.lm_head.weight");
    return mlx.trunk().at("language_model.model." + name.substr(std::string("model.language_model.").size()));
  };
  for (const auto& [name, view] : raw.trunk()) {
    auto expected = view.to_float();
    if (name.ends_with("norm.weight") && !name.ends_with("linear_attn.norm.weight")) {
      for (auto& value : expected) value += 1.0f;  // identical: the MLX file holds float32
    }
    EXPECT_EQ(twin(name).to_float(), expected) << name;
  }
  const auto conv = "model.language_model.layers.0.linear_attn.conv1d.weight";
  EXPECT_EQ(raw.trunk().at(conv).shape, (std::vector<std::int64_t>{192, 1, 4}));
  EXPECT_EQ(twin(conv).shape, (std::vector<std::int64_t>{192, 4, 1}));
  for (const auto& [name, view] : raw.head().tensors) {
    auto expected = view.to_float();
    if (name.ends_with("norm.weight") || name.find("pre_fc_norm") != std::string::npos) {
      for (auto& value : expected) value += 1.0f;
    }
    EXPECT_EQ(mlx.head().tensors.at(name).to_float(), expected) << name;
  }
}

TEST(TinyCheckpoint, ASeedGivesTheSameBytesAndAnotherSeedOthers) {
  const TempDir dir;
  write_tiny(dir.path() / "a", tiny());
  write_tiny(dir.path() / "b", tiny());
  auto other = tiny();
  other.seed = 2;
  write_tiny(dir.path() / "c", other);
  const auto bytes = [&](const char* name) { return read_text(dir.path() / name / "model.safetensors"); };
  EXPECT_EQ(bytes("a"), bytes("b"));
  EXPECT_NE(bytes("a"), bytes("c"));
}

TEST(TinyCheckpoint, TiedModelsHaveNoOutputMatrix) {
  const TempDir dir;
  const auto tied = open(write_tiny(dir.path() / "tied", tiny_tied()));
  EXPECT_FALSE(tied.trunk().contains("lm_head.weight"));
  EXPECT_EQ(tied.text_config().maybe_boolean("tie_word_embeddings"), true);
  EXPECT_TRUE(open(write_tiny(dir.path() / "own", tiny())).trunk().contains("lm_head.weight"));
}

TEST(TinyCheckpoint, WeightsHaveTheSpreadThatTheSpecificationAsksFor) {
  const TempDir dir;
  const auto checkpoint = open(write_tiny(dir.path() / "m", tiny_hybrid()));
  const auto spread = [&](const std::string& name) {
    const auto values = checkpoint.trunk().at(name).to_float();
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value) * value;
    return std::sqrt(sum / static_cast<double>(values.size()));
  };
  EXPECT_NEAR(spread("model.language_model.embed_tokens.weight"), 1.0, 0.03);
  EXPECT_NEAR(spread("lm_head.weight"), 1.0 / 8, 0.005);
  EXPECT_NEAR(spread("model.language_model.layers.0.linear_attn.conv1d.weight"), 0.5, 0.05);
  EXPECT_NEAR(spread("model.language_model.norm.weight"), 0.3, 0.1);
}

class TinyQuantised : public ::testing::TestWithParam<int> {};

TEST_P(TinyQuantised, EveryMatrixIsPackedAsTheConfigSays) {
  const TempDir dir;
  auto options = with_layout(tiny_hybrid(), TinyOptions::Layout::mlx);
  options.quant_bits = GetParam();
  options.head_quant_bits = 8;
  const auto checkpoint = open(write_tiny(dir.path() / "q", options));
  const std::string module = "language_model.model.embed_tokens";
  const auto& weight = checkpoint.trunk().at(module + ".weight");
  const auto geometry = infer_geometry(module, weight, checkpoint.trunk().at(module + ".scales"), 64);
  EXPECT_EQ(geometry, (QuantGeometry{QuantMode::affine, GetParam(), 64}));
  EXPECT_EQ(declared_geometry(checkpoint.config(), module), geometry);
  EXPECT_TRUE(checkpoint.trunk().contains(module + ".biases"));
  EXPECT_FALSE(checkpoint.trunk().contains("language_model.model.norm.scales"));
  EXPECT_EQ(
      infer_geometry("fc", checkpoint.head().tensors.at("fc.weight"), checkpoint.head().tensors.at("fc.scales"), 128),
      (QuantGeometry{QuantMode::affine, 8, 64}));
}

INSTANTIATE_TEST_SUITE_P(Checkpoint, TinyQuantised, ::testing::Values(4, 8));

TEST(TinyCheckpoint, TensorsCanBePoisonedRenamedAndRemoved) {
  const TempDir dir;
  write_tiny(dir.path() / "m", tiny());
  edit_tensors(dir.path() / "m" / "model.safetensors", [](TensorMap& tensors) {
    tensors.at("mtp.norm.weight").set(3, NAN);
    tensors["lm_head.renamed"] = std::move(tensors.at("lm_head.weight"));
    tensors.erase("lm_head.weight");
    tensors.at("model.language_model.norm.weight").shape = {8, 8};
  });
  const auto checkpoint = open(dir.path() / "m");
  EXPECT_TRUE(std::isnan(checkpoint.head().tensors.at("norm.weight").to_float()[3]));
  EXPECT_TRUE(checkpoint.trunk().contains("lm_head.renamed"));
  EXPECT_FALSE(checkpoint.trunk().contains("lm_head.weight"));
  EXPECT_EQ(checkpoint.trunk().at("model.language_model.norm.weight").shape, (std::vector<std::int64_t>{8, 8}));
  EXPECT_EQ(checkpoint.trunk_metadata().at("format"), "pt");
}

}  // namespace
}  // namespace foresay
