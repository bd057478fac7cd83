// foresay eval --layers and --diff: what every layer made, and where two runs part.
#include <cstring>
#include <limits>

#include "cli/program.h"

namespace foresay {
namespace {

class EvalLayers : public ::testing::Test {
 protected:
  /// Runs eval on a checkpoint and gives the file's tensors.
  TensorMap eval(const fs::path& model, const fs::path& out, Arguments more = {"--layers"}) {
    more.insert(more.begin(),
        {"eval", model.string(), "--ids", "9,4,7,7,1,3", "--depth", "2", "--lane", "cpu", "--out", out.string()});
    const Outcome outcome = foresay(more);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return read_tensors(out);
  }
  fs::path changed(const std::string& name, const std::function<void(TensorMap&)>& edit) {
    const fs::path copy = dir_.path() / name;
    fs::copy_file(a_, copy);
    edit_tensors(copy, edit);
    return copy;
  }
  static Arguments diff(const fs::path& a, const fs::path& b, const Arguments& more = {}) {
    Arguments arguments = {"eval", "--diff", a.string(), b.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  TempDir dir_;
  fs::path model_ = write_tiny(dir_.path() / "model", tiny_hybrid());  // a recurrent layer, then attention
  fs::path a_ = dir_.path() / "a.safetensors", b_ = dir_.path() / "b.safetensors";
};

TEST_F(EvalLayers, NamesEveryPartOfTrunkAndHead) {
  const TensorMap tensors = eval(model_, a_);
  const auto expect = [&](const std::string& name, std::int64_t rows, std::int64_t width) {
    ASSERT_EQ(tensors.count(name), 1u) << name;
    EXPECT_EQ(tensors.at(name).shape, (std::vector<std::int64_t>{rows, width})) << name;
  };
  expect("layer/embed", 6, 64);
  for (const std::string layer : {"layer/layers.0.", "layer/layers.1."}) {
    for (const char* part : {"input_norm", "post_norm", "mlp.sum"}) expect(layer + part, 6, 64);
    expect(layer + "mlp.inner", 6, 128);
  }
  for (const char* part : {"z", "mixed"}) expect(std::string("layer/layers.0.recurrent.") + part, 6, 128);
  for (const char* part : {"b", "a"}) expect(std::string("layer/layers.0.recurrent.") + part, 6, 4);
  expect("layer/layers.0.recurrent.qkv", 6, 192);
  expect("layer/layers.0.recurrent.sum", 6, 64);
  expect("layer/layers.1.attention.q", 6, 256);  // with the output gate
  for (const char* part : {"k", "v"}) expect(std::string("layer/layers.1.attention.") + part, 6, 64);
  expect("layer/layers.1.attention.mixed", 6, 128);
  expect("layer/layers.1.attention.sum", 6, 64);
  expect("layer/final_norm", 6, 64);
  for (int step = 1; step <= 2; ++step) {
    const std::string head = "layer/mtp." + std::to_string(step) + ".";
    for (const char* part : {"embedding_norm", "hidden_norm", "fused", "input_norm", "attention.sum", "post_norm",
             "mlp.sum", "final_norm"}) {
      expect(head + part, 6 - step, 64);
    }
  }
}

TEST_F(EvalLayers, AreTheRowsOfTheResultsAndChangeNothing) {
  const TensorMap with = eval(model_, a_), without = eval(model_, b_, {});
  EXPECT_EQ(with.at("layer/layers.1.mlp.sum").bytes, with.at("hidden_pre_norm").bytes);
  EXPECT_EQ(with.at("layer/final_norm").bytes, with.at("hidden_post_norm").bytes);
  EXPECT_EQ(without.size(), 5u);
  for (const auto& [name, tensor] : without) EXPECT_EQ(with.at(name).bytes, tensor.bytes) << name;
}

TEST_F(EvalLayers, RowsOfSeveralPassesAreStackedByPosition) {
  eval(model_, a_);
  eval(model_, b_, {"--layers", "--prefill-chunk", "4"});
  EXPECT_EQ(read_text(a_), read_text(b_));
}

TEST_F(EvalLayers, EqualDumpsAreWithinAnyTolerance) {
  eval(model_, a_);
  const Outcome outcome = foresay(diff(a_, a_, {"--tolerance", "0"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_parts(outcome.out, {"layer/layers.1.attention.mixed", "max 0", "all within 0"});
}

// The use that it is for: one matrix differs, and the first tensor above the tolerance is what that matrix makes.
TEST_F(EvalLayers, TheFirstTensorAboveTheToleranceIsWhereTwoModelsPart) {
  eval(model_, a_);
  edit_tensors(model_ / "model.safetensors",
      [](TensorMap& tensors) { tensors.at("model.language_model.layers.1.self_attn.v_proj.weight").set(5, 1.0f); });
  eval(model_, b_);
  const Outcome outcome = foresay(diff(a_, b_));
  EXPECT_EQ(outcome.status, 7) << outcome.out;
  const auto mark = outcome.out.find("<- first above the tolerance");
  ASSERT_NE(mark, std::string::npos) << outcome.out;
  const auto line = outcome.out.rfind('\n', mark) + 1;
  EXPECT_TRUE(outcome.out.substr(line).starts_with("layer/layers.1.attention.v ")) << outcome.out;
  EXPECT_EQ(outcome.out.find("<- first", mark + 1), std::string::npos);
  expect_parts(outcome.out, {"the first is layer/layers.1.attention.v"});

  const auto d = json_of(foresay(diff(a_, b_, {"--json"})), 7);
  EXPECT_EQ(d["first_above"], "layer/layers.1.attention.v");
  EXPECT_EQ(d["within"], false);
  EXPECT_EQ(d["tensors"][0]["name"], "layer/embed");  // in order of execution
  EXPECT_EQ(d["tensors"][0]["max_abs"], 0);
  EXPECT_EQ(foresay(diff(a_, b_, {"--tolerance", "1e9"})).status, 0);
}

TEST_F(EvalLayers, FiguresAreThoseOfTheDefinition) {
  eval(model_, a_);
  const auto b = changed("c.safetensors", [](TensorMap& tensors) {
    OwnedTensor& logits = tensors.at("logits");
    std::vector<float> zeros(logits.bytes.size() / sizeof(float));
    std::memcpy(logits.bytes.data(), zeros.data(), logits.bytes.size());  // all of the values are lost
  });
  const auto d = json_of(foresay(diff(a_, b, {"--json"})), 7);
  for (const auto& tensor : d["tensors"]) {
    if (tensor["name"] == "logits") {
      EXPECT_NEAR(tensor["relative_rms"].get<double>(), 1, 1e-12);
      EXPECT_GT(tensor["max_abs"].get<double>(), 0);
    } else {
      EXPECT_EQ(tensor["relative_rms"], 0) << tensor["name"];
    }
  }
}

TEST_F(EvalLayers, MissingMisshapenAndNonFiniteTensorsAreNamed) {
  eval(model_, a_);
  const auto fewer = changed("fewer.safetensors", [](TensorMap& tensors) { tensors.erase("layer/layers.0.mlp.sum"); });
  Outcome outcome = foresay(diff(a_, fewer));
  EXPECT_EQ(outcome.status, 7);
  expect_parts(
      outcome.out, {"layer/layers.0.mlp.sum", "missing in the second file", "the first is layer/layers.0.mlp.sum"});
  outcome = foresay(diff(fewer, a_));
  EXPECT_EQ(outcome.status, 7);
  expect_parts(outcome.out, {"missing in the first file"});

  const auto flat = changed("flat.safetensors", [](TensorMap& tensors) { tensors.at("logits").shape = {1536}; });
  outcome = foresay(diff(a_, flat));
  EXPECT_EQ(outcome.status, 7);
  expect_parts(outcome.out, {"[6, 256]", "shape [1536] in the second file", "the first is logits"});

  const auto nan = changed("nan.safetensors",
      [](TensorMap& tensors) { tensors.at("logits").set(3, std::numeric_limits<float>::quiet_NaN()); });
  EXPECT_EQ(foresay(diff(a_, nan, {"--tolerance", "1e30"})).status, 7);
  EXPECT_EQ(foresay(diff(nan, nan)).status, 0);  // alike in both
}

TEST_F(EvalLayers, RefusesWhatIsNoComparison) {
  eval(model_, a_);
  expect_refused(diff(a_, dir_.path() / "none"), 2, {"--diff", (dir_.path() / "none").string()});
  expect_refused({"eval", "--diff", a_.string()}, 2, {"--diff"});
  expect_refused(diff(a_, a_, {"--ids", "1"}), 2, {"--ids", "--diff"});
  expect_refused(diff(a_, a_, {"--tolerance", "-1"}), 2, {"--tolerance", ">= 0", "\"-1\""});
  expect_refused(diff(a_, a_, {"--tolerance", "nan"}), 2, {"--tolerance"});
  expect_refused({"eval", kBundled, "--diff", a_.string(), a_.string()}, 2, {"--diff", "no MODEL"});
  write_text(b_, "no safetensors");
  expect_refused(diff(a_, b_), 3, {b_.string()});
}

}  // namespace
}  // namespace foresay
