// foresay inspect: what it says of good folders and bad ones.
#include "cli/program.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

TEST(Inspect, SaysWhatTheBundledModelIs) {
  const Outcome outcome = foresay({"inspect", kBundled, "--json"});
  const Json d = json_of(outcome);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(d["model"], kBundled);
  EXPECT_EQ(d["model_type"], "qwen3_5");
  EXPECT_EQ(d["family"], "qwen3_5");
  EXPECT_EQ(d["layers"], 8);
  EXPECT_EQ(d["hidden"], 256);
  EXPECT_EQ(d["vocab"], 4096);
  EXPECT_EQ(d["context"], 4096);
  EXPECT_EQ(d["mtp"]["layers"], 1);
  EXPECT_EQ(d["mtp"]["tensors"], 15);
  EXPECT_EQ(d["mtp"]["found_in"], "model.safetensors");
  EXPECT_EQ(d["verdict"], "mtp");
  EXPECT_EQ(d["quantisation"]["summary"]["BF16"], d["quantisation"]["modules"].size());
  for (const char* field :
      {"trunk_norms", "head_norms", "base_hidden", "recycled_hidden", "concat_order", "position_mode"}) {
    EXPECT_FALSE(d["contract"][field]["source"].get<std::string>().empty()) << field;
  }
  EXPECT_EQ(d["warnings"], Json::array());
  // Two of eight layers attend, and the head's: keys and values of 2 heads of 64, in bf16.
  EXPECT_EQ(d["memory"]["per_1k_tokens"], 1000 * 3 * 2 * 2 * 64 * 2);
  EXPECT_EQ(d["memory"]["of_which_head"]["per_1k_tokens"], 1000 * 2 * 2 * 64 * 2);
  EXPECT_GT(d["memory"]["fixed"], 0);

  const Outcome text = foresay({"inspect", kBundled});
  EXPECT_EQ(text.status, 0);
  expect_parts(
      text.out, {"model ", "family ", "8 layers, hidden 256, vocabulary 4096, context 4096", "verdict ", "mtp"});
}

TEST(Inspect, NamesEveryQuantisedFormat) {
  TempDir dir;
  auto options = tiny();
  options.layout = TinyOptions::Layout::mlx;
  options.quant_bits = 4;
  options.head_quant_bits = 8;
  options.head_file = "mtp/weights.safetensors";
  const Json d = json_of(foresay({"inspect", write_tiny(dir.path() / "model", options).string(), "--json"}));
  EXPECT_EQ(d["mtp"]["found_in"], "mtp/weights.safetensors");
  EXPECT_EQ(d["quantisation"]["summary"]["affine 4 bits, group 64"], 2 * 7 + 2);
  EXPECT_EQ(d["quantisation"]["summary"]["affine 8 bits, group 64"], 7 + 1);
}

TEST(Inspect, AHeadThatIsAbsentOrOffMeansAutoregressiveOnly) {
  TempDir dir;
  auto options = tiny();
  options.head = false;
  const auto folder = write_tiny(dir.path() / "model", options).string();
  const Json absent = json_of(foresay({"inspect", folder, "--json"}));
  EXPECT_EQ(absent["verdict"], "ar-only");
  EXPECT_EQ(absent["mtp"]["layers"], 0);
  EXPECT_TRUE(absent["mtp"]["found_in"].is_null());
  EXPECT_EQ(absent["warnings"].size(), 1u);
  EXPECT_EQ(json_of(foresay({"inspect", kBundled, "--json", "--mtp", "off"}))["verdict"], "ar-only");

  const Json required = json_of(foresay({"inspect", folder, "--json", "--mtp", "required"}), 5);
  EXPECT_EQ(required["verdict"], "refused");
}

TEST(Inspect, ARefusalIsADocumentAMessageAndAnExitStatus) {
  TempDir dir;
  const auto folder = write_tiny(dir.path() / "model", tiny());
  fs::resize_file(folder / "model.safetensors", 20000);
  Outcome outcome = foresay({"inspect", folder.string(), "--json"});
  Json d = json_of(outcome, 3);
  EXPECT_EQ(d["verdict"], "refused");
  ASSERT_EQ(d["reasons"].size(), 1u);
  expect_parts(d["reasons"][0], {"model.safetensors", "missing"});
  expect_parts(outcome.err, {"foresay: ", "model.safetensors"});
  outcome = foresay({"inspect", folder.string()});
  EXPECT_EQ(outcome.status, 3);
  expect_parts(outcome.out, {"refused", "model.safetensors"});

  write_tiny(folder, tiny());
  edit_json(folder / "config.json", [](auto& config) { config["model_type"] = "llama"; });
  outcome = foresay({"inspect", folder.string(), "--json"});
  d = json_of(outcome, 4);
  EXPECT_EQ(d["model_type"], "llama");
  expect_parts(outcome.err, {"\"llama\"", "qwen3_5"});
}

TEST(Inspect, TheWiringThatIsAskedForIsShownWrittenAndFollowed) {
  TempDir dir;
  const auto folder = write_tiny(dir.path() / "model", tiny());
  const Json asked = json_of(foresay({"inspect", folder.string(), "--json", "--write", "--base-hidden", "pre_norm",
      "--recycled-hidden", "mix:pre_norm:post_norm:0p25", "--concat-order", "hidden_embedding"}));
  EXPECT_EQ(asked["contract"]["base_hidden"]["value"], "pre_norm");
  EXPECT_EQ(asked["contract"]["base_hidden"]["source"], "asked for");

  const Json followed = json_of(foresay({"inspect", folder.string(), "--json", "--concat-order", "embedding_hidden"}));
  EXPECT_EQ(followed["contract"]["base_hidden"]["value"], "pre_norm");
  EXPECT_EQ(followed["contract"]["recycled_hidden"]["value"], "mix:pre_norm:post_norm:0.25");
  expect_parts(followed["contract"]["recycled_hidden"]["source"], {"foresay.json"});
  EXPECT_EQ(followed["contract"]["concat_order"]["value"], "embedding_hidden");
  EXPECT_EQ(followed["contract"]["concat_order"]["source"], "asked for");

  auto options = tiny();
  options.head = false;
  expect_refused({"inspect", write_tiny(dir.path() / "trunk", options).string(), "--write"}, 2, {"--write", "head"});
  EXPECT_FALSE(fs::exists(dir.path() / "trunk" / "foresay.json"));
}

TEST(Inspect, AWiringThatDoesNotExistNamesTheChoices) {
  expect_refused({"inspect", kBundled, "--base-hidden", "middle"}, 2, {"--base-hidden", "post_norm", "\"middle\""});
  expect_refused(
      {"generate", kBundled, "--recycled-hidden", "mix:fc:prev:2"}, 2, {"--recycled-hidden", "mix:", "0 to 1"});
  TempDir dir;
  const auto folder = write_tiny(dir.path() / "model", tiny());
  write_text(folder / "foresay.json", R"({"foresay": 1, "contract": {"base_hidden": "middle"}})");
  const Outcome outcome = foresay({"inspect", folder.string()});
  EXPECT_EQ(outcome.status, 3);
  expect_parts(outcome.err, {"foresay.json", "base_hidden", "post_norm", "\"middle\""});
}

TEST(Inspect, APathThatIsNoFolderIsWrongUsage) {
  TempDir dir;
  write_text(dir.path() / "file", "x");
  expect_refused({"inspect", (dir.path() / "nothing").string()}, 2, {"nothing"});
  expect_refused({"inspect", (dir.path() / "file").string()}, 2, {"file", "folder"});
  expect_refused({"inspect", (dir.path() / "nothing").string(), "--json"}, 2, {"nothing"});
  expect_refused({"inspect", kBundled, "--mtp", "maybe"}, 2, {"--mtp", "required", "\"maybe\""});
}

TEST(Inspect, ANameIsLookedUpInTheHuggingFaceCache) {
  TempDir dir;
  const fs::path model = dir.path() / "hub" / "models--org--tiny", snapshot = model / "snapshots" / "abcdef0123";
  fs::create_directories(model / "refs");
  write_text(model / "refs" / "main", "abcdef0123");
  write_tiny(snapshot, tiny());
  Command command;
  command.environment = {{"HF_HUB_CACHE", std::nullopt}, {"HF_HOME", dir.path().string()}};
  for (const std::string name : {"org/tiny", "org/tiny@main", "org/tiny@abcd"}) {
    const Json d = json_of(foresay({"inspect", name, "--json"}, command));
    EXPECT_EQ(d["model"], snapshot.string());
    EXPECT_EQ(d["verdict"], "mtp");
  }
  expect_refused({"inspect", "org/tiny@dev"}, 2, {"org/tiny", "dev", "main", "abcdef0123"}, command);
  expect_refused({"generate", "org/other", "--prompt-ids", "1"}, 2, {"org/other", "hf download"}, command);
}

TEST(Inspect, APathThatIsNoUtf8IsShownAllTheSame) {
  TempDir dir;
  const auto folder = write_tiny(dir.path() / "m\xC3(", tiny());
  const Json d = json_of(foresay({"inspect", folder.string(), "--json"}));
  expect_parts(d["model"], {"m\xEF\xBF\xBD("});
  EXPECT_EQ(
      json_of(foresay({"generate", folder.string(), "--json", "--prompt-ids", "1", "--max-tokens", "1"}))["ids"].size(),
      1u);
}

}  // namespace
}  // namespace foresay
