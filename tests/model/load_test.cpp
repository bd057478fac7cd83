#include "model/load.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

#include "base/error.h"
#include "fixtures/tiny_checkpoint.h"

namespace foresay {
namespace {

namespace fs = std::filesystem;

/// A tiny checkpoint whose head a test damages.
class LoadHead : public ::testing::Test {
 protected:
  LoadedModel load(MtpMode mode) {
    report_ = Report();
    checkpoint_.emplace(Checkpoint::open(folder_, report_));
    return load_model(*checkpoint_, *ops_, {.mtp = mode, .contract = {}}, report_);
  }

  void expect_refused(MtpMode mode, int status, const std::vector<std::string>& parts) {
    try {
      (void)load(mode);
    } catch (const Error& error) {
      EXPECT_EQ(exit_code(error.code()), status) << error.what();
      for (const auto& part : parts) EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      return;
    }
    ADD_FAILURE() << "no error with --mtp " << name_of(mode);
  }

  /// The trunk was loaded alone and gives logits.
  void expect_plain_decoding(const LoadedModel& loaded) {
    EXPECT_EQ(loaded.model->info().head_layers, 0);
    EXPECT_EQ(loaded.model->info().max_depth, 0);
    const auto caches = loaded.model->make_caches();
    const Forward forward = loaded.model->forward(
        {.tokens = {1, 2, 3}, .slices = {{.first = 0, .count = 3, .caches = caches.get()}}, .logit_rows = {2}});
    EXPECT_EQ(forward.logits.rows, 1);
    EXPECT_EQ(forward.logits.width, loaded.model->info().vocab);
  }

  /// A head that is there but cannot be used, under every mode. `parts` name what is wrong.
  void expect_unusable(const std::vector<std::string>& parts) {
    expect_refused(MtpMode::on, 3, parts);
    expect_refused(MtpMode::required, 5, parts);

    const auto automatic = load(MtpMode::automatic);
    expect_plain_decoding(automatic);
    ASSERT_EQ(report_.warnings().size(), 1u);
    for (const auto& part : parts) {
      EXPECT_NE(report_.warnings().front().find(part), std::string::npos) << report_.warnings().front();
      EXPECT_NE(automatic.mtp_reason.find(part), std::string::npos) << automatic.mtp_reason;
    }

    const auto off = load(MtpMode::off);
    expect_plain_decoding(off);
    EXPECT_TRUE(report_.warnings().empty());
    EXPECT_EQ(off.mtp_reason, "switched off");
  }

  void write_with_side_file() {
    auto options = tiny();
    options.head_file = kSideFile;
    options.manifest = true;
    write_tiny(folder_, options);
  }

  static constexpr const char* kSideFile = "mtp/weights.safetensors";
  TempDir dir_;
  fs::path folder_ = dir_.path() / "model";
  Report report_;
  std::unique_ptr<Ops> ops_ = make_cpu_ops(1);
  std::optional<Checkpoint> checkpoint_;
};

TEST_F(LoadHead, AnIntactSideFileIsUsed) {
  write_with_side_file();
  for (const MtpMode mode : {MtpMode::on, MtpMode::automatic, MtpMode::required}) {
    const auto loaded = load(mode);
    EXPECT_EQ(loaded.model->info().head_layers, 1);
    EXPECT_GT(loaded.model->info().max_depth, 0);
    EXPECT_EQ(loaded.mtp_reason, std::string("head found in ") + kSideFile);
    EXPECT_TRUE(report_.warnings().empty());
  }
  EXPECT_EQ(load(MtpMode::off).model->info().head_layers, 0);
}

TEST_F(LoadHead, AnAbsentHeadIsAWarningUnlessItIsRequired) {
  auto options = tiny();
  options.head = false;
  write_tiny(folder_, options);
  for (const MtpMode mode : {MtpMode::on, MtpMode::automatic}) {
    expect_plain_decoding(load(mode));
    EXPECT_EQ(report_.warnings().size(), 1u);
  }
  expect_plain_decoding(load(MtpMode::off));
  EXPECT_TRUE(report_.warnings().empty());
  expect_refused(MtpMode::required, 5, {"no MTP tensors were found"});
}

// Case B47: the head has a width of its own, which config.json does not tell.
TEST_F(LoadHead, AnotherPackingThanTheTrunksIsOneWarning) {
  auto options = tiny();
  options.layout = TinyOptions::Layout::mlx;
  options.quant_bits = 4;
  options.head_quant_bits = 8;
  write_tiny(folder_, options);
  const auto loaded = load(MtpMode::on);
  EXPECT_EQ(loaded.model->info().head_layers, 1);
  ASSERT_EQ(report_.warnings().size(), 1u);
  for (const char* part : {"more of the head", "config.json declares affine 4 bits", "the tensors are affine 8 bits"}) {
    EXPECT_NE(report_.warnings().front().find(part), std::string::npos) << report_.warnings().front();
  }
}

TEST_F(LoadHead, ATruncatedSideFileIsUnusable) {
  write_with_side_file();
  fs::resize_file(folder_ / kSideFile, fs::file_size(folder_ / kSideFile) - 10);
  expect_unusable({kSideFile, "10 bytes are missing"});
}

TEST_F(LoadHead, ASideFileWithABadHeaderIsUnusable) {
  write_with_side_file();
  auto bytes = read_text(folder_ / kSideFile);
  bytes[9] = '!';
  write_text(folder_ / kSideFile, bytes);
  expect_unusable({kSideFile, "valid JSON"});
  write_text(folder_ / kSideFile, "version https://git-lfs.github.com/spec/v1\n");
  expect_unusable({kSideFile, "git lfs pull"});
  write_text(folder_ / kSideFile, "");
  expect_unusable({kSideFile, "empty file"});
}

TEST_F(LoadHead, AnUnreadableManifestMakesTheHeadUnusable) {
  write_with_side_file();
  const auto manifest = folder_ / "mtp" / "manifest.json";
  write_text(manifest, "{\"artifact_schema_version\": 1,");
  expect_unusable({"manifest.json", "valid JSON"});
  write_text(manifest, "[]");
  expect_unusable({"manifest.json", "object"});
  fs::remove(manifest);
  fs::create_directory(manifest);
  expect_unusable({"manifest.json", "folder"});
}

TEST_F(LoadHead, ASideFileThatLacksATensorIsUnusable) {
  write_with_side_file();
  edit_tensors(folder_ / kSideFile, [](TensorMap& tensors) {
    std::erase_if(tensors, [](const auto& tensor) { return tensor.first.ends_with("fc.weight"); });
  });
  expect_unusable({"fc.weight", "missing"});
}

TEST_F(LoadHead, ADamagedTrunkIsRefusedInEveryMode) {
  write_with_side_file();
  fs::resize_file(folder_ / "model.safetensors", fs::file_size(folder_ / "model.safetensors") - 10);
  for (const MtpMode mode : {MtpMode::on, MtpMode::automatic, MtpMode::off, MtpMode::required}) {
    expect_refused(mode, 3, {"model.safetensors", "10 bytes are missing"});
  }
}

}  // namespace
}  // namespace foresay
