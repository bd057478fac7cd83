#include "checkpoint/checkpoint_folder.h"

namespace foresay {
namespace {

namespace fs = std::filesystem;

class HeadPlaces : public CheckpointFolder, public ::testing::WithParamInterface<std::string> {};

TEST_P(HeadPlaces, ASideFileIsFoundWithAndWithoutPrefix) {
  for (const std::string prefix : {"mtp.", "language_model.mtp.", ""}) {
    fs::remove_all(folder_);
    auto options = tiny();
    options.head_file = GetParam();
    options.head_prefix = prefix;
    options.manifest = true;
    write_tiny(folder_, options);
    const auto checkpoint = open();
    EXPECT_EQ(checkpoint.head().tensors.size(), kHeadTensors);
    EXPECT_TRUE(checkpoint.head().tensors.contains("fc.weight"));
    EXPECT_EQ(checkpoint.head().found_in, GetParam());
    EXPECT_FALSE(checkpoint.head().in_trunk_shards);
    EXPECT_EQ(checkpoint.head().metadata.at("format"), "pt");
    EXPECT_EQ(checkpoint.head().manifest.integer("artifact_schema_version", 1, 9), 1);
    EXPECT_EQ(checkpoint.trunk().size(), 25u);
    EXPECT_TRUE(report_.warnings().empty());
  }
}

TEST_P(HeadPlaces, ASideFileBesideAnIndexIsNoStray) {
  auto options = sharded();
  options.head_file = GetParam();
  options.index_lists_head = false;
  write_tiny(folder_, options);
  EXPECT_EQ(open().head().tensors.size(), kHeadTensors);
  EXPECT_EQ(count(report_.notes(), "ignored"), 0);
}

INSTANTIATE_TEST_SUITE_P(Checkpoint, HeadPlaces,
    ::testing::Values("mtp/weights.safetensors", "mtp.safetensors", "model-mtp.safetensors",
        "model-mtp-head.safetensors", "qwen.mtp.safetensors"));

TEST_F(CheckpointFolder, TheFirstPlaceWinsAndTheOthersAreNamedInOneWarning) {
  auto options = tiny();
  write_tiny(folder_, options);
  const std::vector<std::string> places = {"qwen.mtp.safetensors", "model-mtp-head.safetensors",
      "model-mtp.safetensors", "mtp.safetensors", "mtp/weights.safetensors", "custom/head.safetensors"};
  auto head = read_tensors(folder_ / "model.safetensors");
  head_of(head);
  for (const auto& place : places) {  // from the last choice to the first
    write_tensors(folder_ / place, head);
    if (place == "custom/head.safetensors") {
      edit_json(folder_ / "config.json", [&](auto& config) { config["mlx_lm_extra_tensors"]["mtp_file"] = place; });
    }
    EXPECT_EQ(open().head().found_in, place);
    EXPECT_EQ(report_.warnings().size(), 1u);
    EXPECT_EQ(count(report_.warnings(), "several files hold an MTP head: " + place), 1);
  }
}

TEST_F(CheckpointFolder, AnEmptySideFileYieldsToTheNextPlace) {
  write_tiny(folder_, tiny());
  write_tensors(folder_ / "mtp.safetensors", {});
  EXPECT_EQ(open().head().found_in, "model.safetensors");
}

TEST_F(CheckpointFolder, TheConfigsHeadFileMustStayInTheFolder) {
  write_tiny(folder_, tiny());
  for (const std::string path : {"../head.safetensors", "/tmp/head.safetensors", "a/../../head.safetensors", ".."}) {
    edit_json(folder_ / "config.json", [&](auto& config) { config["mlx_lm_extra_tensors"]["mtp_file"] = path; });
    expect_refused(ErrorCode::checkpoint, {"mtp_file", "inside the folder", path});
  }
}

TEST_F(CheckpointFolder, AHeadFileThatIsMissingIsWarnedAboutAndTheSearchGoesOn) {
  write_tiny(folder_, tiny());
  edit_json(
      folder_ / "config.json", [](auto& config) { config["mlx_lm_extra_tensors"]["mtp_file"] = "gone.safetensors"; });
  EXPECT_EQ(open().head().found_in, "model.safetensors");
  EXPECT_EQ(count(report_.warnings(), "gone.safetensors"), 1);
}

TEST_F(CheckpointFolder, AConfigThatNamesTheTrunksOwnFileMeansTheHeadInIt) {
  write_tiny(folder_, tiny());
  edit_json(
      folder_ / "config.json", [](auto& config) { config["mlx_lm_extra_tensors"]["mtp_file"] = "model.safetensors"; });
  const auto checkpoint = open();
  EXPECT_EQ(checkpoint.trunk().size(), 25u);
  EXPECT_EQ(checkpoint.head().tensors.size(), kHeadTensors);
  EXPECT_TRUE(checkpoint.head().in_trunk_shards);
}

TEST_F(CheckpointFolder, EveryPrefixInTheTrunkFilesIsTakenOffAndNeverReachesTheTrunk) {
  for (const std::string prefix : {"language_model.model.mtp.", "model.language_model.mtp.", "language_model.mtp.",
           "model.model.mtp.", "model.mtp.", "mtp."}) {
    auto options = tiny();
    options.head_prefix = prefix;
    write_tiny(folder_, options);
    const auto checkpoint = open();
    EXPECT_EQ(checkpoint.head().tensors.size(), kHeadTensors) << prefix;
    EXPECT_EQ(checkpoint.trunk().size(), 25u);
    EXPECT_EQ(head_relative_name(prefix + "fc.weight"), "fc.weight");
  }
  EXPECT_EQ(head_relative_name("model.layers.0.mtp.weight"), "");
  EXPECT_EQ(head_relative_name("mtpx.fc.weight"), "");
}

TEST_F(CheckpointFolder, AHeadUnderTwoPrefixesIsRefused) {
  write_tiny(folder_, tiny());
  edit_tensors(folder_ / "model.safetensors",
      [](TensorMap& tensors) { tensors["language_model.mtp.fc.weight"] = tensors["mtp.fc.weight"]; });
  expect_refused(ErrorCode::checkpoint, {"language_model.mtp.fc.weight", "mtp.fc.weight"});
}

TEST_F(CheckpointFolder, AStrayModelFileThatHoldsNothingButAHeadIsUsedWhenThereIsNoOther) {
  auto options = sharded();
  options.head = false;
  write_tiny(folder_, options);
  const auto whole = dir_.path() / "whole";
  write_tiny(whole, tiny());
  auto head = read_tensors(whole / "model.safetensors");
  write_tensors(folder_ / "model-extra.safetensors", head_of(head));
  EXPECT_EQ(open().head().found_in, "model-extra.safetensors");
  EXPECT_EQ(count(report_.notes(), "ignored"), 0);
}

// ---- damage: the trunk runs without its head, so opening succeeds and says what is wrong

TEST_F(CheckpointFolder, AnIntactHeadHasNoProblem) {
  for (const bool head : {true, false}) {
    auto options = tiny();
    options.head = head;
    write_tiny(folder_, options);
    EXPECT_EQ(open().head().problem, "");
  }
}

TEST_P(HeadPlaces, ADamagedSideFileIsAProblemOfTheHeadAlone) {
  auto options = tiny();
  options.head_file = GetParam();
  write_tiny(folder_, options);
  const auto whole = read_text(folder_ / options.head_file);
  const std::vector<std::pair<std::string, std::string>> damages = {
      {whole.substr(0, whole.size() - 10), "10 bytes are missing"}, {whole.substr(0, 5), "at least 8 bytes"},
      {"", "empty file"}, {whole.substr(0, 8) + "}" + whole.substr(9), "valid JSON"}};
  for (const auto& [bytes, message] : damages) {
    write_text(folder_ / options.head_file, bytes);
    const auto checkpoint = open();
    EXPECT_TRUE(checkpoint.head().tensors.empty());
    EXPECT_EQ(checkpoint.head().found_in, GetParam());
    EXPECT_FALSE(checkpoint.head().in_trunk_shards);
    EXPECT_NE(checkpoint.head().problem.find(GetParam()), std::string::npos) << checkpoint.head().problem;
    EXPECT_NE(checkpoint.head().problem.find(message), std::string::npos) << checkpoint.head().problem;
    EXPECT_EQ(checkpoint.trunk().size(), 25u);
  }
}

TEST_F(CheckpointFolder, AManifestThatCannotBeReadIsAProblemOfTheHead) {
  auto options = tiny();
  options.head_file = "mtp/weights.safetensors";
  write_tiny(folder_, options);
  const auto manifest = folder_ / "mtp" / "manifest.json";
  for (const std::string text : {"{", "[]", "not json", ""}) {
    write_text(manifest, text);
    const auto checkpoint = open();
    EXPECT_EQ(checkpoint.head().tensors.size(), kHeadTensors);
    EXPECT_NE(checkpoint.head().problem.find(manifest.string()), std::string::npos) << checkpoint.head().problem;
  }
  fs::remove(manifest);
  EXPECT_EQ(open().head().problem, "");
}

TEST_F(CheckpointFolder, ADamagedFirstPlaceIsNotReplacedByAnotherHead) {
  write_tiny(folder_, tiny());  // an intact head in model.safetensors
  write_text(folder_ / "mtp.safetensors", "x");
  auto checkpoint = open();
  EXPECT_EQ(checkpoint.head().found_in, "mtp.safetensors");
  EXPECT_NE(checkpoint.head().problem, "");
  EXPECT_TRUE(checkpoint.head().tensors.empty());
  EXPECT_EQ(count(report_.warnings(), "mtp.safetensors comes first, model.safetensors ignored"), 1);
}

TEST_F(CheckpointFolder, ADamagedLaterPlaceIsOnlyMentioned) {
  auto options = tiny();
  options.head_file = "mtp/weights.safetensors";
  write_tiny(folder_, options);
  write_text(folder_ / "model-mtp.safetensors", "x");
  const auto checkpoint = open();
  EXPECT_EQ(checkpoint.head().found_in, "mtp/weights.safetensors");
  EXPECT_EQ(checkpoint.head().problem, "");
  EXPECT_EQ(checkpoint.head().tensors.size(), kHeadTensors);
  EXPECT_EQ(count(report_.warnings(), "model-mtp.safetensors (unreadable) ignored"), 1);
}

TEST_F(CheckpointFolder, DamageAmongTheTrunksOwnShardsIsRefused) {
  write_tiny(folder_, tiny());
  fs::resize_file(folder_ / "model.safetensors", fs::file_size(folder_ / "model.safetensors") - 10);
  expect_refused(ErrorCode::checkpoint, {"model.safetensors", "10 bytes are missing"});
}

}  // namespace
}  // namespace foresay
