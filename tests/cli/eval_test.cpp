// foresay eval: the file it writes against what the library computes.
#include "decode/evaluate.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "cli/program.h"
#include "model/load.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;
using Shape = std::vector<std::int64_t>;

/// The library's own answer.
Evaluation evaluate_folder(const fs::path& folder, const std::vector<TokenId>& ids, int depth) {
  Report report;
  const Checkpoint checkpoint = Checkpoint::open(folder, report);
  const auto ops = make_cpu_ops(1, CpuActivations::int8);  // the default of the program
  const LoadedModel loaded = load_model(checkpoint, *ops, {.mtp = MtpMode::on, .contract = {}}, report);
  return evaluate(*loaded.model, ids, depth);
}

/// Identical: the same bits.
void expect_bits(const OwnedTensor& got, const Shape& shape, const std::vector<float>& want) {
  EXPECT_EQ(got.dtype, DType::f32);
  EXPECT_EQ(got.shape, shape);
  ASSERT_EQ(got.bytes.size(), want.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(got.bytes.data(), want.data(), got.bytes.size()), 0);
}

class Eval : public ::testing::Test {
 protected:
  Outcome eval(const fs::path& model, Arguments more) {
    more.insert(more.begin(), {"eval", model.string(), "--out", out_.string()});
    return foresay(more);
  }

  TempDir dir_;
  fs::path out_ = dir_.path() / "out.safetensors";
};

TEST_F(Eval, WritesWhatTheLibraryComputes) {
  const std::vector<TokenId> ids = {259, 497, 259, 304, 12, 7};
  const Outcome outcome = eval(kBundled, {"--ids", "259,497,259,304,12,7", "--prefill-chunk", "4"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto tensors = read_tensors(out_);
  const Evaluation want = evaluate_folder(kBundled, ids, 3);
  ASSERT_EQ(tensors.size(), 6u);
  expect_bits(tensors.at("logits"), {6, 4096}, want.logits);
  expect_bits(tensors.at("hidden_pre_norm"), {6, 256}, want.hidden_pre_norm);
  expect_bits(tensors.at("hidden_post_norm"), {6, 256}, want.hidden_post_norm);
  for (int s = 1; s <= 3; ++s) {
    expect_bits(
        tensors.at(fmt::format("mtp_logits.{}", s)), {6 - s, 4096}, want.mtp_logits[static_cast<std::size_t>(s - 1)]);
  }
  for (const auto& [name, tensor] : tensors) expect_parts(outcome.out, {name});
}

TEST_F(Eval, JsonListsTheTensors) {
  const Json d = json_of(eval(kBundled, {"--ids", "1 2 3 4", "--depth", "2", "--json"}));
  EXPECT_EQ(d["model"], kBundled);
  EXPECT_EQ(d["depth"], 2);
  EXPECT_EQ(d["out"], out_.string());
  EXPECT_EQ(d["tensors"]["logits"], Json({4, 4096}));
  EXPECT_EQ(d["tensors"]["mtp_logits.2"], Json({2, 4096}));
  EXPECT_FALSE(d["tensors"].contains("mtp_logits.3"));
}

TEST_F(Eval, DraftStepsEndWithTheIds) {
  EXPECT_EQ(eval(kBundled, {"--ids", "5,6,7", "--depth", "8"}).status, 0);
  auto tensors = read_tensors(out_);
  EXPECT_EQ(tensors.size(), 5u);
  EXPECT_EQ(tensors.at("mtp_logits.2").shape, (Shape{1, 4096}));

  EXPECT_EQ(eval(kBundled, {"--ids", "5", "--depth", "3"}).status, 0);  // one position: nothing for the head to read
  tensors = read_tensors(out_);
  EXPECT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors.at("logits").shape, (Shape{1, 4096}));
}

TEST_F(Eval, WithoutAHeadThereAreNoDraftLogits) {
  for (const Arguments& more : {Arguments{"--mtp", "off"}, {"--depth", "0"}}) {
    Arguments arguments = {"--ids", "5,6,7"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(eval(kBundled, arguments).status, 0);
    EXPECT_EQ(read_tensors(out_).size(), 3u) << joined(more);
  }
  auto options = tiny();
  options.head = false;
  const Json d = json_of(eval(write_tiny(dir_.path() / "model", options), {"--ids", "5,6,7", "--json"}));
  EXPECT_EQ(d["depth"], 0);
  EXPECT_EQ(read_tensors(out_).size(), 3u);
}

TEST_F(Eval, IdsComeFromStdinAndThreadsChangeNothing) {
  Command command;
  command.input = "259 497\n12,7";
  const auto run = [&](const std::string& threads) {
    const Outcome outcome =
        foresay({"eval", kBundled, "--ids", "-", "--out", out_.string(), "--threads", threads}, command);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return read_text(out_);
  };
  EXPECT_EQ(run("1"), run("2"));
}

TEST_F(Eval, RefusesBadIdsAndOptions) {
  const auto refused = [&](const Arguments& more, const std::vector<std::string>& parts) {
    Arguments arguments = {"eval", kBundled, "--out", out_.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refused(arguments, 2, parts);
    EXPECT_FALSE(fs::exists(out_));
  };
  refused({}, {"--ids"});
  refused({"--ids", ""}, {"--ids", "found none"});
  refused({"--ids", "1,x"}, {"--ids", "\"x\""});
  refused({"--ids", "1,-2"}, {"--ids", "\"-2\""});
  refused({"--ids", "1,99999999999"}, {"--ids", "99999999999"});
  refused({"--ids", "4096"}, {"4096", "vocabulary", "4095"});
  refused({"--ids", "1", "--depth", "9"}, {"--depth", "0 to 8", "\"9\""});
  refused({"--ids", "1", "--prefill-chunk", "-1"}, {"--prefill-chunk", "\"-1\""});
  std::string many = "1";
  for (int i = 0; i < 4096; ++i) many += ",1";
  refused({"--ids", many}, {"4097", "4096"});
  expect_refused({"eval", kBundled, "--ids", "1"}, 2, {"--out"});
  expect_refused({"eval", kBundled, "--ids", "1", "--out", ""}, 2, {"--out"});
}

TEST_F(Eval, AFileThatCannotBeWrittenIsAResourceFailure) {
  const auto missing = dir_.path() / "missing" / "out.safetensors";
  expect_refused({"eval", kBundled, "--ids", "1,2", "--out", missing.string()}, 6, {missing.string(), "No such file"});
  fs::create_directory(dir_.path() / "folder");
  expect_refused({"eval", kBundled, "--ids", "1,2", "--out", (dir_.path() / "folder").string()}, 6, {"directory"});
  EXPECT_TRUE(fs::is_empty(dir_.path() / "folder"));
  int left = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(dir_.path())) ++left;
  EXPECT_EQ(left, 1);  // no temporary file stays behind
}

TEST_F(Eval, DamagedWeightsAreNamed) {
  for (const std::string name :
      {"model.language_model.layers.1.mlp.up_proj.weight", "mtp.layers.0.mlp.up_proj.weight"}) {
    fs::remove_all(dir_.path() / "model");
    const auto folder = write_tiny(dir_.path() / "model", tiny());
    edit_tensors(folder / "model.safetensors",
        [&](TensorMap& tensors) { tensors.at(name).set(3, std::numeric_limits<float>::quiet_NaN()); });
    expect_refused({"eval", folder.string(), "--ids", "1,2,3", "--out", out_.string()}, 3, {name, "value 3 is nan"});
    EXPECT_FALSE(fs::exists(out_));
  }
}

}  // namespace
}  // namespace foresay
