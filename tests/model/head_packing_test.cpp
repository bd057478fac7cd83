// Heads whose matrices are quantised, or unpacked, when they are loaded.
#include "model/head_packing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "decode/evaluate.h"
#include "fixtures/golden.h"
#include "fixtures/moe_checkpoint.h"
#include "fixtures/temp_dir.h"
#include "fixtures/tiny_checkpoint.h"

namespace foresay {
namespace {

namespace fs = std::filesystem;

TEST(HeadPackingValues, AreReadAndWritten) {
  const auto read = [](const char* text) {
    const auto value = contract_value<HeadPacking>(text);
    return value ? name_of(*value) : "nothing";
  };
  for (const char* text : {"stored", "bf16", "affine:4:64", "affine:8:32:all"}) EXPECT_EQ(read(text), text);
  EXPECT_EQ(read("4"), "affine:4:64");
  EXPECT_EQ(read("3:128"), "affine:3:128");
  EXPECT_EQ(read("6:all"), "affine:6:64:all");
  for (const char* text :
      {"", "7", "4:16", "4:", "4:64:some", "affine", "affine:", "-4", "4 ", ":64", "all", "4:all:64"}) {
    EXPECT_EQ(read(text), "nothing") << text;
  }
}

class HeadPackingLoad : public ::testing::Test {
 protected:
  static LoadOptions packed(const char* text) {
    LoadOptions options;
    options.contract.head_packing = contract_value<HeadPacking>(text);
    return options;
  }
  static std::vector<float> head_logits(const fs::path& folder, const char* packing) {
    const OpenedModel model(folder, packed(packing));
    std::vector<TokenId> ids(40);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i * 29 % 256);
    std::vector<float> all;
    for (const auto& step : evaluate(*model, ids, 2).mtp_logits) all.insert(all.end(), step.begin(), step.end());
    return all;
  }
  /// Formats by module, where the module's name ends like this.
  static std::string format_of(const LoadedModel& loaded, const std::string& end) {
    std::string found;
    for (const StorageEntry& entry : loaded.storage) {
      if (entry.module.find("mtp.") != std::string::npos && entry.module.ends_with(end)) found += entry.format;
    }
    return found;
  }

  TempDir dir_;
};

TEST_F(HeadPackingLoad, QuantisedAtLoadIsQuantisedInTheFile) {
  auto options = tiny();
  options.layout = TinyOptions::Layout::mlx;
  options.head_file = "mtp/weights.safetensors";
  const fs::path raw = write_tiny(dir_.path() / "raw", options);
  for (const int bits : {4, 8}) {
    options.head_quant_bits = bits;
    const fs::path stored = write_tiny(dir_.path() / std::to_string(bits), options);
    const std::string all = std::to_string(bits) + ":64:all";
    EXPECT_EQ(head_logits(raw, all.c_str()), head_logits(stored, "stored")) << bits;
    EXPECT_NE(head_logits(raw, std::to_string(bits).c_str()), head_logits(stored, "stored")) << "fc stays as it is";
    // Packed once: bits that are asked for do not touch it.
    EXPECT_EQ(head_logits(stored, "2:32:all"), head_logits(stored, "stored")) << bits;
  }
}

TEST_F(HeadPackingLoad, LayersAlonePackOrEverythingAndNeverNormsOrRouters) {
  const fs::path moe = fs::path(FORESAY_TEST_DATA) / "random" / "qwen3_5_moe";
  const OpenedModel layers(moe, packed("8:32"));
  EXPECT_EQ(format_of(layers.loaded, "mtp.fc"), "BF16");
  EXPECT_EQ(format_of(layers.loaded, "self_attn.q_proj"), "affine 8 bits, group 32");
  EXPECT_EQ(format_of(layers.loaded, "mlp.experts.gate_up_proj"), "affine 8 bits, group 32");
  EXPECT_EQ(format_of(layers.loaded, "mlp.gate"), "BF16");
  EXPECT_EQ(format_of(layers.loaded, "mlp.shared_expert_gate"), "BF16");
  EXPECT_EQ(format_of(layers.loaded, "shared_expert.down_proj"), "BF16") << "48 inputs are no whole groups";
  EXPECT_EQ(format_of(OpenedModel(moe, packed("8:32:all")).loaded, "mtp.fc"), "affine 8 bits, group 32");
  EXPECT_EQ(layers->contract().head_packing.source, "asked for");
  EXPECT_LE(relative_rms(head_logits(moe, "8:32:all"), head_logits(moe, "stored")), 0.15);
}

TEST_F(HeadPackingLoad, UnpackedMatricesAreTheirValues) {
  const auto write = [&](const char* name, Packing packing) {
    return write_golden_variant(dir_.path() / name, "qwen3_5_moe", [&](TensorMap& tensors, nlohmann::json& config) {
      to_mlx_layout(tensors);
      quantise(tensors, config, 4, packing);
    });
  };
  const fs::path stored = write("packed", Packing::packed), values = write("values", Packing::values);
  const OpenedModel unpacked(stored, packed("bf16"));
  EXPECT_EQ(format_of(unpacked.loaded, "mtp.fc"), "BF16");
  EXPECT_EQ(format_of(unpacked.loaded, "self_attn.q_proj"), "BF16");
  EXPECT_LE(relative_rms(head_logits(stored, "bf16"), head_logits(values, "stored")), 0.05);
}

TEST(HeadPackingTrained, EightBitsKeepWhatTheHeadKnows) {
  const GoldenPrompt golden = read_golden("tiny-qwen3_5/prompt_00");
  LoadOptions options;
  options.contract.head_packing = contract_value<HeadPacking>("8:64:all");
  const OpenedModel model(golden.checkpoint, options);
  const auto e = evaluate(*model, golden.continued(3), 3);
  for (int step = 1; step <= 3; ++step) {
    EXPECT_LE(relative_rms(rows_at(e.mtp_logits[static_cast<std::size_t>(step - 1)], e.vocab, golden.positions),
                  golden.tensors.at("mtp_logits." + std::to_string(step))),
        0.02)
        << step;
  }
}

}  // namespace
}  // namespace foresay
