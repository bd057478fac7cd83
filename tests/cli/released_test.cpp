// foresay inspect on every released size, from headers of the true names and shapes, and on damaged ones.
#include <sys/resource.h>
#include <sys/stat.h>

#include "cli/program.h"
#include "fixtures/released.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

struct Expected {
  std::string name, family;
  int layers, hidden, vocab;
  int trunk_tensors;  ///< of the language model, as the specification counts
  int head_layers, head_tensors;
};

void PrintTo(const Expected& expected, std::ostream* out) {
  *out << expected.name;
}

const Expected kReleased[] = {{"qwen3_5-0.8b", "qwen3_5", 24, 1024, 248320, 320, 1, 15},
    {"qwen3_5-2b", "qwen3_5", 24, 2048, 248320, 320, 1, 15}, {"qwen3_5-4b", "qwen3_5", 32, 2560, 248320, 426, 1, 15},
    {"qwen3_5-9b", "qwen3_5", 32, 4096, 248320, 427, 1, 15}, {"qwen3_5-27b", "qwen3_5", 64, 5120, 248320, 851, 1, 15},
    {"qwen3_8-27b", "qwen3_5", 64, 5120, 248320, 851, 1, 15},
    {"qwen3_5-35b-a3b", "qwen3_5_moe", 40, 2048, 248320, 693, 1, 19},
    {"qwen3_5-122b-a10b", "qwen3_5_moe", 48, 3072, 248320, 831, 1, 19},
    {"qwen3_5-397b-a17b", "qwen3_5_moe", 60, 4096, 248320, 1038, 1, 19},
    {"qwen3_next-80b-a3b", "qwen3_next", 48, 2048, 151936, 74391, 1, 17 + 3 * 512},
    {"step-3.5-flash", "step3p5", 45, 4096, 128896, 753, 3, 51}};

class Released : public ::testing::TestWithParam<Expected> {};

TEST_P(Released, IsWhatInspectSaysWithoutReadingWeights) {
  const Expected& want = GetParam();
  TempDir dir;
  const auto folder = write_released(dir.path() / "model", released(want.name));
  const Outcome outcome = foresay({"inspect", folder.string(), "--json"});
  const Json d = json_of(outcome);
  EXPECT_EQ(d["family"], want.family);
  EXPECT_EQ(d["layers"], want.layers);
  EXPECT_EQ(d["hidden"], want.hidden);
  EXPECT_EQ(d["vocab"], want.vocab);
  EXPECT_EQ(d["context"], 262144);
  EXPECT_EQ(d["mtp"]["layers"], want.head_layers);
  EXPECT_EQ(d["mtp"]["tensors"], want.head_tensors);
  EXPECT_EQ(d["verdict"], "mtp");
  EXPECT_EQ(d["warnings"], Json::array());
  const int trunk = d["trunk_tensors"];
  EXPECT_EQ(want.family == "step3p5" ? trunk - want.head_tensors : trunk, want.trunk_tensors);
  const Json& contract = d["contract"];
  EXPECT_EQ(contract["base_hidden"]["value"], want.family == "step3p5" ? "pre_norm" : "post_norm");
  EXPECT_EQ(contract["concat_order"]["value"], "embedding_hidden");
  EXPECT_EQ(contract["head_norms"]["value"], "zero_centred");
  EXPECT_GT(d["bytes_read"]["per_token"], 1e8);
  EXPECT_LT(d["bytes_read"]["per_draft_step"], d["bytes_read"]["per_token"]);
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  EXPECT_LT(usage.ru_maxrss, 2'000'000) << "kB: weights are looked at, not read";
}

INSTANTIATE_TEST_SUITE_P(, Released, ::testing::ValuesIn(kReleased), [](const auto& test) {
  std::string name = test.param.name;
  std::ranges::replace_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

/// A tensor of each kind, and what the model needs it to be.
struct Part {
  std::string model, tensor, shape;
  bool head;
};

const Part kParts[] = {{"qwen3_5-0.8b", "model.language_model.embed_tokens.weight", "[248320, 1024]", false},
    {"qwen3_5-0.8b", "model.language_model.layers.5.mlp.up_proj.weight", "[3584, 1024]", false},
    {"qwen3_5-0.8b", "model.language_model.layers.7.self_attn.q_proj.weight", "[4096, 1024]", false},
    {"qwen3_5-0.8b", "model.language_model.layers.6.linear_attn.in_proj_z.weight", "[2048, 1024]", false},
    {"qwen3_5-0.8b", "model.language_model.norm.weight", "[1024]", false},
    {"qwen3_5-0.8b", "mtp.fc.weight", "[1024, 2048]", true},
    {"qwen3_5-0.8b", "mtp.layers.0.self_attn.o_proj.weight", "[1024, 2048]", true},
    {"qwen3_5-0.8b", "mtp.pre_fc_norm_hidden.weight", "[1024]", true},
    {"qwen3_5-35b-a3b", "model.language_model.layers.9.mlp.experts.gate_up_proj", "[256, 1024, 2048]", false},
    {"qwen3_5-35b-a3b", "model.language_model.layers.9.mlp.gate.weight", "[256, 2048]", false},
    {"qwen3_5-35b-a3b", "mtp.layers.0.mlp.experts.down_proj", "[256, 2048, 512]", true},
    {"step-3.5-flash", "model.layers.20.moe.down_proj.weight", "[288, 4096, 1280]", false},
    {"step-3.5-flash", "model.layers.20.self_attn.g_proj.weight", "[64, 4096]", false},
    {"step-3.5-flash", "model.layers.46.eh_proj.weight", "[4096, 8192]", true}};

enum class Damage { missing, longer, transposed, integers };

class DamagedTensor : public ::testing::TestWithParam<std::tuple<int, Damage>> {};

TEST_P(DamagedTensor, IsNamedWithWhatWasExpectedAndFound) {
  const Part& part = kParts[std::get<0>(GetParam())];
  const Damage damage = std::get<1>(GetParam());
  ReleasedFiles files = released(part.model);
  ReleasedTensor& tensor = files.tensors.at(part.tensor);
  std::string found = describe_shape(tensor.shape);
  ASSERT_EQ(found, part.shape);
  if (damage == Damage::missing) {
    files.tensors.erase(part.tensor);
    found = "missing";
  } else if (damage == Damage::longer) {
    tensor.shape[0] += 1;
    found = describe_shape(tensor.shape);
  } else if (damage == Damage::transposed) {
    if (tensor.shape.size() < 2 || tensor.shape.size() == 3) {  // a fused block may be turned as a whole
      tensor.shape.push_back(1);
    } else {
      std::swap(tensor.shape[0], tensor.shape[1]);
    }
    found = describe_shape(tensor.shape);
  } else {
    tensor.dtype = "I32";
    found = "I32";
  }
  TempDir dir;
  const auto folder = write_released(dir.path() / "model", files);
  const Outcome outcome = foresay({"inspect", folder.string(), "--json"});
  const Json d = json_of(outcome, 3);
  EXPECT_EQ(d["verdict"], "refused");
  // Renamed by the family, a tensor is called by what is left of its name.
  const std::string module = part.tensor.substr(part.tensor.rfind('.', part.tensor.size() - 8) + 1);
  expect_parts(outcome.err, {"foresay: ", module, found});
  if (damage != Damage::integers) expect_parts(outcome.err, {part.shape});
  if (damage != Damage::missing) expect_parts(outcome.err, {".safetensors"});
  if (part.head) {  // the trunk runs without it
    EXPECT_EQ(json_of(foresay({"inspect", folder.string(), "--json", "--mtp", "auto"}))["verdict"], "ar-only");
  }
}

INSTANTIATE_TEST_SUITE_P(, DamagedTensor,
    ::testing::Combine(::testing::Range(0, static_cast<int>(std::size(kParts))),
        ::testing::Values(Damage::missing, Damage::longer, Damage::transposed, Damage::integers)));

class DamagedFolder : public ::testing::Test {
 protected:
  fs::path write(const std::function<void(ReleasedFiles&)>& edit = nullptr) {
    ReleasedFiles files = released("qwen3_5-9b");
    if (edit) edit(files);
    return write_released(dir_.path() / std::to_string(++count_), files);
  }
  static void refused(const fs::path& folder, int status, const std::vector<std::string>& parts) {
    const Outcome outcome = foresay({"inspect", folder.string(), "--json"});
    EXPECT_EQ(json_of(outcome, status)["verdict"], "refused");
    expect_parts(outcome.err, parts);
  }

  TempDir dir_;
  int count_ = 0;
};

TEST_F(DamagedFolder, FilesThatDoNotFitTheIndexAreNamed) {
  const std::string second = "model-00002-of-00004.safetensors";
  fs::path folder = write();
  ASSERT_TRUE(fs::exists(folder / second));
  struct stat status{};
  ASSERT_EQ(::stat((folder / second).c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, 2'000'000) << "files are sparse";
  fs::remove(folder / second);
  refused(folder, 3, {second});

  folder = write();
  fs::resize_file(folder / second, fs::file_size(folder / second) / 2);
  refused(folder, 3, {second, "missing"});
  folder = write();
  fs::resize_file(folder / second, 4);
  refused(folder, 3, {second});
  folder = write();
  edit_json(folder / "model.safetensors.index.json",
      [&](nlohmann::json& index) { index["weight_map"]["model.language_model.layers.3.gone.weight"] = second; });
  refused(folder, 3, {"index", "layers.3.gone.weight", second});
  folder = write();
  write_text(folder / "model.safetensors.index.json", "{\"weight_map\": [");
  refused(folder, 3, {"model.safetensors.index.json", "line 1"});
  folder = write();
  write_text(folder / "config.json", "{\"model_type\": \"qwen3_5\",}");
  refused(folder, 3, {"config.json", "line 1"});
  folder = write();
  fs::remove(folder / "config.json");
  refused(folder, 3, {"config.json"});
}

TEST_F(DamagedFolder, ConfigsThatDoNotFitAreNamed) {
  const auto with = [&](const char* key, const nlohmann::json& value) {
    return write([&](ReleasedFiles& files) {
      nlohmann::json& text = files.config["text_config"];
      if (value.is_null()) {
        text.erase(key);
      } else {
        text[key] = value;
      }
    });
  };
  refused(with("hidden_size", nullptr), 3, {"config.json", "hidden_size"});
  refused(with("hidden_size", "4096"), 3, {"hidden_size", "\"4096\""});
  refused(with("hidden_size", 4095), 3, {"embed_tokens.weight", "[248320, 4095]", "[248320, 4096]"});
  refused(with("num_hidden_layers", 33), 3, {"layers.32"});
  refused(with("num_hidden_layers", 31), 3, {"layers.31", "does not have"});
  refused(with("num_key_value_heads", 3), 3, {"num_attention_heads 16", "num_key_value_heads 3"});
  refused(with("layer_types", {"full_attention"}), 3, {"layer_types has 1 entries", "32"});
}

TEST_F(DamagedFolder, FormatsAndFamiliesThatAreNotSupportedAreNamed) {
  for (const char* method : {"fp8", "awq", "gptq", "compressed-tensors", "modelopt"}) {
    refused(write([&](ReleasedFiles& files) { files.config["quantization_config"] = {{"quant_method", method}}; }), 4,
        {method, "MLX"});
  }
  for (const char* type : {"llama", "qwen4_exp", "step3p5v", "deepseek_v3"}) {
    refused(write([&](ReleasedFiles& files) { files.config["model_type"] = type; }), 4,
        {std::string("\"") + type + "\"", "qwen3_5", "step3p5"});
  }
}

}  // namespace
}  // namespace foresay
