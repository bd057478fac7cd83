#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <utility>

#include "checkpoint/checkpoint_folder.h"

namespace foresay {
namespace {

namespace fs = std::filesystem;

TEST_F(CheckpointFolder, OpensOneFileWithTheHeadAmongTheTrunk) {
  write_tiny(folder_, tiny());
  const auto checkpoint = open();
  EXPECT_EQ(checkpoint.trunk().size(), 2u + 2 * 11 + 1);
  EXPECT_EQ(checkpoint.head().tensors.size(), kHeadTensors);
  EXPECT_TRUE(checkpoint.head().tensors.contains("layers.0.self_attn.q_proj.weight"));
  EXPECT_EQ(checkpoint.head().found_in, "model.safetensors");
  EXPECT_TRUE(checkpoint.head().in_trunk_shards);
  EXPECT_EQ(checkpoint.trunk_metadata().at("format"), "pt");
  EXPECT_EQ(checkpoint.text_config().integer("hidden_size", 1, 4096), 64);
  EXPECT_EQ(checkpoint.config().string("model_type"), "qwen3_5");
  EXPECT_EQ(checkpoint.folder(), folder_);
  EXPECT_TRUE(report_.warnings().empty());
  EXPECT_EQ(count(report_.notes(), "2 tensors of the vision tower"), 1);
  EXPECT_GT(checkpoint.mapped_bytes(), 100000u);
}

TEST_F(CheckpointFolder, AFlatConfigIsItsOwnTextConfig) {
  auto options = tiny();
  options.wrapper = false;
  write_tiny(folder_, options);
  const auto checkpoint = open();
  EXPECT_EQ(checkpoint.text_config().json(), checkpoint.config().json());
  EXPECT_TRUE(checkpoint.trunk().contains("model.layers.1.mlp.up_proj.weight"));
  EXPECT_TRUE(report_.notes().empty());
}

TEST_F(CheckpointFolder, ShardsGiveTheSameTensorsAsOneFile) {
  write_tiny(folder_, tiny());
  const auto whole = open();
  const auto whole_folder = std::exchange(folder_, dir_.path() / "sharded");
  for (const bool with_index : {true, false}) {
    write_tiny(folder_, sharded());
    if (!with_index) fs::remove(folder_ / kIndex);
    const auto parts = open();
    EXPECT_TRUE(report_.warnings().empty());
    ASSERT_EQ(parts.trunk().size(), whole.trunk().size());
    ASSERT_EQ(parts.head().tensors.size(), whole.head().tensors.size());
    EXPECT_TRUE(parts.head().in_trunk_shards);
    for (const auto& [name, view] : whole.trunk()) {
      EXPECT_EQ(OwnedTensor::copy_of(parts.trunk().at(name)).bytes, OwnedTensor::copy_of(view).bytes) << name;
    }
  }
}

TEST_F(CheckpointFolder, AnIndexThatOmitsTheHeadIsCompletedFromTheShardsWithOneWarning) {  // B40
  auto options = sharded();
  options.index_lists_head = false;
  write_tiny(folder_, options);
  EXPECT_EQ(open().head().tensors.size(), kHeadTensors);
  EXPECT_EQ(report_.warnings().size(), 1u);
  EXPECT_EQ(count(report_.warnings(), "omits 15 tensors"), 1);
}

TEST_F(CheckpointFolder, AShardOfTheSetThatTheIndexForgotIsReadWithOneWarning) {  // B40
  write_tiny(folder_, sharded());
  const std::string forgotten = "model-00002-of-00002.safetensors";
  edit_json(folder_ / kIndex, [&](auto& index) {
    auto& map = index["weight_map"];
    for (auto it = map.begin(); it != map.end();) it = *it == forgotten ? map.erase(it) : std::next(it);
  });
  EXPECT_EQ(open().head().tensors.size(), kHeadTensors);
  EXPECT_EQ(report_.warnings().size(), 1u);
  EXPECT_EQ(count(report_.notes(), forgotten), 1);
}

TEST_F(CheckpointFolder, EveryFileThatTheIndexNamesIsOpened) {  // B41
  for (const std::string file : {"mtp.safetensors", "extra/head.safetensors"}) {
    fs::remove_all(folder_);
    auto options = sharded();
    options.head_file = file;
    write_tiny(folder_, options);
    const auto checkpoint = open();
    EXPECT_EQ(checkpoint.head().tensors.size(), kHeadTensors) << file;
    EXPECT_EQ(checkpoint.head().found_in, file);
    EXPECT_FALSE(checkpoint.head().in_trunk_shards);
    EXPECT_TRUE(report_.warnings().empty());
  }
}

TEST_F(CheckpointFolder, AStrayFileBesideACompleteIndexIsIgnoredAndMentionedOnce) {  // B43
  write_tiny(folder_, sharded());
  const std::string name = "model.language_model.norm.weight";
  write_tensors(folder_ / "model.safetensors", {{name, OwnedTensor::of(DType::f32, {3}, std::vector<float>{1, 2, 3})}});
  write_text(folder_ / "adapter.safetensors", "not even safetensors");
  const auto checkpoint = open();
  EXPECT_EQ(checkpoint.trunk().at(name).shape, (std::vector<std::int64_t>{64}));
  EXPECT_EQ(count(report_.notes(), "ignored adapter.safetensors, model.safetensors"), 1);
  EXPECT_TRUE(report_.warnings().empty());
}

TEST_F(CheckpointFolder, AMissingShardIsNamedTogetherWithTheIndex) {  // B44
  write_tiny(folder_, sharded());
  fs::rename(folder_ / "model-00001-of-00002.safetensors", folder_ / "other.safetensors");
  expect_refused(ErrorCode::checkpoint, {(folder_ / kIndex).string(), "model-00001-of-00002.safetensors", "stale"});
}

TEST_F(CheckpointFolder, ATensorThatItsShardLacksMakesTheIndexStale) {  // B44
  write_tiny(folder_, sharded());
  edit_tensors(folder_ / "model-00001-of-00002.safetensors",
      [](TensorMap& tensors) { tensors.erase("model.language_model.embed_tokens.weight"); });
  expect_refused(ErrorCode::checkpoint,
      {(folder_ / kIndex).string(), "embed_tokens.weight", "model-00001-of-00002.safetensors", "stale"});
}

TEST_F(CheckpointFolder, HeadTensorsWhoseFileIsMissingCountAsAbsent) {
  auto options = sharded();
  options.head_file = "mtp.safetensors";
  write_tiny(folder_, options);
  fs::remove(folder_ / "mtp.safetensors");
  EXPECT_TRUE(open().head().tensors.empty());
  EXPECT_EQ(open().head().found_in, "");
  EXPECT_EQ(report_.warnings().size(), 1u);
  EXPECT_EQ(count(report_.warnings(), "15 MTP tensors in mtp.safetensors"), 1);
}

TEST_F(CheckpointFolder, HeadTensorsThatTheirShardLacksCountAsAbsent) {
  write_tiny(folder_, sharded());
  for (const auto* shard : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}) {
    edit_tensors(folder_ / shard, [](TensorMap& tensors) {
      std::erase_if(tensors, [](const auto& tensor) { return !head_relative_name(tensor.first).empty(); });
    });
  }
  EXPECT_TRUE(open().head().tensors.empty());
  EXPECT_EQ(report_.warnings().size(), 1u);
}

TEST_F(CheckpointFolder, ATensorInTwoShardsIsTakenWhereTheIndexSays) {
  write_tiny(folder_, sharded());
  const std::string name = "model.language_model.embed_tokens.weight";
  edit_tensors(folder_ / "model-00002-of-00002.safetensors",
      [&](TensorMap& tensors) { tensors[name] = OwnedTensor::of(DType::f32, {1}, std::vector<float>{0}); });
  EXPECT_EQ(open().trunk().at(name).shape, (std::vector<std::int64_t>{256, 64}));
  fs::remove(folder_ / kIndex);
  expect_refused(
      ErrorCode::checkpoint, {name, "model-00001-of-00002.safetensors and model-00002-of-00002.safetensors"});
}

TEST_F(CheckpointFolder, AnIndexThatIsNoIndexIsRefused) {
  write_tiny(folder_, sharded());
  const auto with_map = [&](const std::string& map) { write_text(folder_ / kIndex, "{\"weight_map\":" + map + "}"); };
  with_map("[]");
  expect_refused(ErrorCode::checkpoint, {kIndex, "weight_map", "an object"});
  with_map("{}");
  expect_refused(ErrorCode::checkpoint, {kIndex, "found none"});
  with_map("{\"a\":5}");
  expect_refused(ErrorCode::checkpoint, {kIndex, "a: expected a file name, found 5"});
  for (const std::string path : {"../x.safetensors", "/etc/passwd", "a/../../x", "..", ".", ""}) {
    with_map("{\"a\":\"" + path + "\"}");
    expect_refused(ErrorCode::checkpoint, {kIndex, "inside the folder"});
  }
  write_text(folder_ / kIndex, "{}");
  expect_refused(ErrorCode::checkpoint, {kIndex, "weight_map"});
}

TEST_F(CheckpointFolder, AnIncompleteSetWithoutAnIndexIsRefused) {
  write_tiny(folder_, sharded());
  fs::remove(folder_ / kIndex);
  fs::remove(folder_ / "model-00001-of-00002.safetensors");
  expect_refused(ErrorCode::checkpoint, {"expected 2 shards", "number 1 is missing"});
}

TEST_F(CheckpointFolder, FoldersWithoutAModelAreRefused) {
  expect_refused(ErrorCode::usage, {folder_.string(), "nothing there"});
  write_text(folder_, "x");
  expect_refused(ErrorCode::usage, {folder_.string(), "found a file"});
  fs::remove(folder_);
  fs::create_directory(folder_);
  expect_refused(ErrorCode::checkpoint, {folder_.string(), "config.json"});
  write_text(folder_ / "config.json", "{}");
  expect_refused(ErrorCode::checkpoint, {folder_.string(), "no safetensors files"});
  write_text(folder_ / "weights.safetensors", "x");
  expect_refused(ErrorCode::checkpoint, {folder_.string(), "model*.safetensors", "weights.safetensors"});
  write_text(folder_ / "model.safetensors", "");
  expect_refused(ErrorCode::checkpoint, {"model.safetensors", "empty file"});
  write_tensors(folder_ / "model.safetensors", {{"mtp.fc.weight", OwnedTensor::of(DType::f32, {0}, {})}});
  expect_refused(ErrorCode::checkpoint, {"tensors of a language model"});
  fs::remove(folder_ / "config.json");
  ASSERT_EQ(::mkfifo((folder_ / "config.json").c_str(), 0600), 0);
  expect_refused(ErrorCode::checkpoint, {"config.json", "pipe"});
}

TEST_F(CheckpointFolder, PathsThatTheSystemRefusesAreUsageErrors) {
  for (const std::string& path : {std::string(), std::string(5000, 'x'), std::string("/dev/null/model")}) {
    folder_ = path;
    expect_refused(ErrorCode::usage, {"expected a model folder"});
  }
}

TEST_F(CheckpointFolder, ATextConfigThatIsNoObjectIsRefused) {
  write_tiny(folder_, tiny());
  edit_json(folder_ / "config.json", [](auto& config) { config["text_config"] = 5; });
  expect_refused(ErrorCode::checkpoint, {"config.json: text_config", "an object", "5"});
}

// ---- end-of-turn ids

TEST_F(CheckpointFolder, EosIdsAreTheUnionOfEveryFile) {  // specs: the files disagree
  auto options = tiny();
  options.eos = {4};
  write_tiny(folder_, options);
  EXPECT_EQ(declared_eos_ids(open()), (std::vector<int>{4}));
  write_text(folder_ / "generation_config.json", R"({"eos_token_id":[6,4]})");
  write_text(folder_ / "tokenizer_config.json", R"({"eos_token":"<|im_end|>"})");
  edit_json(folder_ / "config.json", [](auto& config) { config["eos_token_id"] = 9; });
  const auto checkpoint = open();
  EXPECT_EQ(declared_eos_ids(checkpoint), (std::vector<int>{9, 4, 6}));
  EXPECT_EQ(checkpoint.tokenizer_config().string("eos_token"), "<|im_end|>");
}

TEST_F(CheckpointFolder, EosIdsThatAreNoIdsAreRefused) {
  write_tiny(folder_, tiny());
  for (const std::string value : {"-1", "true", "1.5", "[[1]]", "{}", "1e30"}) {
    write_text(folder_ / "generation_config.json", "{\"eos_token_id\":" + value + "}");
    const auto checkpoint = open();
    expect_error(
        ErrorCode::checkpoint, {"generation_config.json: eos_token_id"}, [&] { (void)declared_eos_ids(checkpoint); });
  }
  for (const std::string value : {"null", "[]", "\"</s>\""}) {
    write_text(folder_ / "generation_config.json", "{\"eos_token_id\":" + value + "}");
    EXPECT_TRUE(declared_eos_ids(open()).empty());
  }
}

// ---- the bundled models

TEST(BundledModels, TheRawOneHoldsItsHeadAmongTheTrunk) {
  Report report;
  const auto checkpoint = Checkpoint::open(fs::path(FORESAY_MODELS) / "tiny-qwen3_5", report);
  EXPECT_EQ(checkpoint.trunk().size(), 108u);
  EXPECT_EQ(checkpoint.head().tensors.size(), kHeadTensors);
  EXPECT_TRUE(checkpoint.head().in_trunk_shards);
  EXPECT_EQ(declared_eos_ids(checkpoint), (std::vector<int>{4089, 4091}));
  EXPECT_TRUE(report.warnings().empty());
}

TEST(BundledModels, TheFourBitOneHoldsItsHeadBeside) {
  Report report;
  const auto checkpoint = Checkpoint::open(fs::path(FORESAY_MODELS) / "tiny-qwen3_5-4bit", report);
  EXPECT_EQ(checkpoint.trunk().size(), 234u);
  EXPECT_EQ(checkpoint.head().tensors.size(), kHeadTensors);
  EXPECT_EQ(checkpoint.head().found_in, "mtp/weights.safetensors");
  EXPECT_FALSE(checkpoint.head().in_trunk_shards);
  EXPECT_EQ(checkpoint.head().metadata.at("format"), "mlx");
  EXPECT_TRUE(report.warnings().empty());
}

}  // namespace
}  // namespace foresay
