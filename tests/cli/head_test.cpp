// The MTP head through the program: where it is found, and what --mtp makes of one that is absent, broken or wrong.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cli/program.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

const Arguments kRun = {"--prompt-ids", "1,2,3", "--max-tokens", "12"};

class Head : public ::testing::Test {
 protected:
  void write(const TinyOptions& options = tiny_hybrid()) {
    fs::remove_all(folder_);
    write_tiny(folder_, options);
  }
  Arguments arguments(const Arguments& more) {
    Arguments all = {"generate", folder_.string()};
    all.insert(all.end(), kRun.begin(), kRun.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// Runs with --json; the ids must be those of plain decoding, and stderr must hold one warning with every part.
  Json expect_plain(const std::string& mode, const std::vector<std::string>& parts) {
    const Outcome outcome = foresay(arguments({"--mtp", mode, "--json"}));
    const Json d = json_of(outcome);
    expect_parts(outcome.err, {"warning: "});
    expect_parts(outcome.err, parts);
    EXPECT_EQ(outcome.err.find("warning: "), outcome.err.rfind("warning: ")) << outcome.err;
    EXPECT_EQ(d["stats"]["mtp"]["requested"], mode);
    EXPECT_EQ(d["stats"]["mtp"]["effective"], "off");
    EXPECT_FALSE(d["stats"]["mtp"]["reason"].get<std::string>().empty());
    EXPECT_EQ(d["ids"], json_of(foresay(arguments({"--mtp", "off", "--json"})))["ids"]);
    return d;
  }
  void expect_drafts(int warnings) {
    const Outcome outcome = foresay(arguments({"--json", "--compare"}));
    const Json d = json_of(outcome);
    EXPECT_GT(d["stats"]["drafted"][0], 0);
    EXPECT_EQ(d["identical"], true);
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), warnings) << outcome.err;
  }

  TempDir dir_;
  fs::path folder_ = dir_.path() / "model";
};

TEST_F(Head, AnAbsentOneMeansPlainDecodingUnlessRequired) {
  auto options = tiny_hybrid();
  options.head = false;
  write(options);
  for (const bool announced : {false, true}) {
    edit_json(folder_ / "config.json",
        [&](auto& config) { config["text_config"]["mtp_num_hidden_layers"] = announced ? 1 : 0; });
    for (const std::string mode : {"on", "auto"}) expect_plain(mode, {"no MTP head"});
    expect_refused(arguments({"--mtp", "required"}), 5, {"--mtp required", "mtp"});
    EXPECT_EQ(foresay(arguments({"--mtp", "off"})).status, 0);
  }
}

TEST_F(Head, ABrokenOneIsAnErrorAWarningOrARefusalAsAskedFor) {
  const std::string name = "mtp.layers.0.mlp.up_proj.weight";
  const std::vector<std::pair<std::string, std::function<void(TensorMap&)>>> damages = {
      {"layers.0.mlp.up_proj.weight", [&](TensorMap& tensors) { tensors.erase(name); }},
      {name, [&](TensorMap& tensors) { tensors.at(name).shape = {64, 128}; }},
      {"mtp.surprise.weight", [&](TensorMap& tensors) { tensors["mtp.surprise.weight"] = tensors.at(name); }},
      {"mtp.norm.weight",
          [](TensorMap& tensors) { tensors.at("mtp.norm.weight").set(1, std::numeric_limits<float>::quiet_NaN()); }}};
  for (const auto& [part, damage] : damages) {
    SCOPED_TRACE(part);
    write();
    edit_tensors(folder_ / "model.safetensors", damage);
    expect_refused(arguments({"--mtp", "on"}), 3, {part, "MTP head"});
    expect_refused(arguments({"--mtp", "required"}), 5, {part, "MTP head"});
    expect_plain("auto", {part});
    EXPECT_EQ(foresay(arguments({"--mtp", "off"})).status, 0);
  }
}

TEST_F(Head, OneWhoseLogitsAreNotFiniteIsAsUnusable) {
  write();
  const std::string name = "mtp.layers.0.mlp.up_proj.weight";
  edit_tensors(folder_ / "model.safetensors",
      [&](TensorMap& tensors) { tensors.at(name).set(7, std::numeric_limits<float>::quiet_NaN()); });
  expect_refused(arguments({"--mtp", "on", "--json"}), 3, {name, "not finite"});
  expect_refused(arguments({"--mtp", "required", "--json"}), 5, {name, "not finite"});
  expect_plain("auto", {name, "not finite"});
}

TEST_F(Head, AnIndexThatForgotItOrAStrayFileCostsNothing) {
  auto options = tiny();
  options.shards = 2;
  write(options);
  expect_drafts(0);
  options.index_lists_head = false;  // B40
  write(options);
  expect_drafts(1);
  options.index_lists_head = true;
  options.head_file = "mtp.safetensors";  // B41
  write(options);
  expect_drafts(0);

  const OwnedTensor wrong = OwnedTensor::of(DType::f32, {3}, std::vector<float>{1, 2, 3});  // B43
  write_tensors(folder_ / "model.safetensors", {{"model.language_model.norm.weight", wrong}});
  expect_drafts(0);
  expect_parts(foresay(arguments({})).err, {"note: ", "ignored model.safetensors"});
}

TEST_F(Head, QuantisedTrunksAndHeadsWorkTogether) {
  auto options = tiny_hybrid();
  options.layout = TinyOptions::Layout::mlx;
  options.quant_bits = 4;
  options.head_file = "mtp/weights.safetensors";
  for (const int bits : {0, 4, 8}) {
    options.head_quant_bits = bits;
    write(options);
    const Json d = json_of(foresay(arguments({"--json", "--compare"})));
    EXPECT_GT(d["stats"]["drafted"][0], 0) << bits;
    EXPECT_EQ(d["identical"], true) << bits;
  }
}

/// Takes the 1 of the head's norms away, so that loading, which adds one, gives the bare deltas.
void unshift_norms(TensorMap& tensors, float more_where_near_zero) {
  for (auto& [name, tensor] : tensors) {
    if (!name.starts_with("mtp.") || name.find("norm") == std::string::npos) continue;
    std::vector<float> values = tensor.to_float();
    const float mean = std::accumulate(values.begin(), values.end(), 0.0f) / static_cast<float>(values.size());
    const float shift = std::abs(mean) < 0.1f ? 1.0f + more_where_near_zero : 1.0f;
    for (float& value : values) value -= shift;
    tensor = OwnedTensor::of(tensor.dtype, tensor.shape, values);
  }
}

TEST_F(Head, UnshiftedNormsAreSeenAtLoadWhereTheySilenceIt) {  // B02
  copy_bundled(folder_);
  edit_bundled_weights(folder_, [](TensorMap& tensors) { unshift_norms(tensors, 0); });
  expect_refused(arguments({"--mtp", "on"}), 3, {"norm.weight", "mean gain"});
  expect_plain("auto", {"norm.weight", "mean gain"});
}

TEST_F(Head, UnshiftedNormsAreReportedByAcceptanceOtherwise) {  // B02
  copy_bundled(folder_);
  edit_bundled_weights(folder_, [](TensorMap& tensors) { unshift_norms(tensors, 0.2f); });
  Arguments run = {"generate", folder_.string(), "--prompt", kPrompt, "--max-tokens", "64", "--ignore-eos", "--compare",
      "--json", "--mtp", "on"};
  const Outcome outcome = foresay(run);
  const Json d = json_of(outcome);
  EXPECT_EQ(d["identical"], true);
  EXPECT_GE(d["stats"]["drafted"][0], 32);
  expect_parts(outcome.err, {"warning: ", "first drafts were accepted", "inspect"});

  run[1] = kBundled;
  EXPECT_EQ(foresay(run).err, "");  // a healthy head gives no warning
}

}  // namespace
}  // namespace foresay
