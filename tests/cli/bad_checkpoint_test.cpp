// Folders that are missing, damaged, contradictory or of another architecture.
#include <limits>

#include "cli/program.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const std::string kTrunk = "model.language_model.";

class BadCheckpoint : public ::testing::Test {
 protected:
  void write(const TinyOptions& options = tiny_hybrid()) {
    fs::remove_all(folder_);
    write_tiny(folder_, options);
  }
  void edit(const std::function<void(TensorMap&)>& change) { edit_tensors(folder_ / "model.safetensors", change); }
  void edit_config(const std::function<void(nlohmann::json& text)>& change) {
    edit_json(folder_ / "config.json", [&](auto& config) { change(config["text_config"]); });
  }
  void refused(int status, const std::vector<std::string>& parts) {
    expect_refused({"generate", folder_.string(), "--prompt-ids", "1,2,3", "--max-tokens", "4"}, status, parts);
  }

  TempDir dir_;
  fs::path folder_ = dir_.path() / "model";
};

TEST_F(BadCheckpoint, PathsThatAreNoModelFolder) {
  refused(2, {folder_.string(), "folder", "nothing there"});
  write_text(folder_, "x");
  refused(2, {folder_.string(), "found a file"});
  fs::remove(folder_);
  fs::create_directory(folder_);
  refused(3, {folder_.string(), "config.json"});
  fs::remove(folder_);
  fs::create_directory_symlink(folder_, folder_);  // unreadable also for root
  refused(2, {folder_.string(), "symbolic links"});
  expect_refused({"generate", std::string(5000, 'x'), "--prompt", "x"}, 2, {"name too long"});
}

TEST_F(BadCheckpoint, FilesThatCannotBeRead) {
  write();
  fs::remove(folder_ / "config.json");
  fs::create_directory(folder_ / "config.json");
  refused(3, {"config.json", "regular file", "folder"});
  write();
  fs::remove(folder_ / "model.safetensors");
  fs::create_directory(folder_ / "model.safetensors");
  refused(3, {"model.safetensors", "regular file", "folder"});
  write();
  fs::remove(folder_ / "model.safetensors");
  refused(3, {"model.safetensors", "no safetensors files"});
  write();
  fs::remove(folder_ / "config.json");
  fs::create_symlink("config.json", folder_ / "config.json");
  refused(3, {folder_.string(), "symbolic links"});
}

TEST_F(BadCheckpoint, DamagedFiles) {
  write();
  fs::resize_file(folder_ / "model.safetensors", fs::file_size(folder_ / "model.safetensors") - 100);
  refused(3, {"model.safetensors", "100 bytes are missing"});
  write_text(folder_ / "model.safetensors", std::string("\x10\0\0\0\0\0\0\0{\"a\": nonsense}}", 24));
  refused(3, {"model.safetensors", "valid JSON", "line 1"});
  write_text(folder_ / "model.safetensors", "");
  refused(3, {"model.safetensors", "empty file"});
  write();
  write_text(folder_ / "config.json", "{\"model_type\": \"qwen3_5\",");
  refused(3, {"config.json", "valid JSON", "line 1"});
  write_text(folder_ / "config.json", "[]");
  refused(3, {"config.json", "JSON object"});
}

TEST_F(BadCheckpoint, TensorsThatDoNotFitTheConfig) {
  const std::string name = kTrunk + "layers.1.self_attn.o_proj.weight";
  write();
  edit([&](TensorMap& tensors) { tensors.at(name).shape = {128, 64}; });
  refused(3, {name, "[64, 128]", "[128, 64]", "model.safetensors"});
  write();
  edit([&](TensorMap& tensors) { tensors.erase(name); });
  refused(3, {"layers.1.self_attn.o_proj.weight", "missing"});
  write();
  edit([&](TensorMap& tensors) { tensors[kTrunk + "layers.1.surprise.weight"] = tensors.at(name); });
  refused(3, {kTrunk + "layers.1.surprise.weight", "does not have"});
  write();
  edit_config([](auto& text) { text["hidden_size"] = 32; });
  refused(3, {"embed_tokens.weight", "[256, 32]", "[256, 64]"});
}

TEST_F(BadCheckpoint, ContradictoryConfigs) {
  const auto with = [&](const char* key, const nlohmann::json& value, const std::vector<std::string>& parts) {
    write();
    edit_config([&](auto& text) { text[key] = value; });
    refused(3, parts);
  };
  with("num_key_value_heads", 3, {"num_attention_heads 4", "num_key_value_heads 3"});
  with("layer_types", {"full_attention"}, {"layer_types", "1 entries", "2"});
  with("num_hidden_layers", 0, {"num_hidden_layers", "found 0"});
  with("vocab_size", "many", {"vocab_size", "integer", "\"many\""});
  with("hidden_size", nullptr, {"hidden_size", "found null"});
  with("linear_num_value_heads", 3, {"linear_num_value_heads", "3"});
}

TEST_F(BadCheckpoint, OtherArchitecturesAreUnsupported) {
  for (const std::string type : {"llama", "qwen4_exp"}) {
    write();
    edit_json(folder_ / "config.json", [&](auto& config) { config["model_type"] = type; });
    refused(4, {"model_type", "\"" + type + "\"", "qwen3_5"});
  }
  write();
  edit_json(folder_ / "config.json", [&](auto& config) { config.erase("model_type"); });
  refused(3, {"config.json", "model_type"});
}

TEST_F(BadCheckpoint, AStaleIndexIsNamedWithTheShard) {  // B44
  auto options = tiny();
  options.shards = 2;
  write(options);
  fs::rename(folder_ / "model-00001-of-00002.safetensors", folder_ / "renamed.safetensors");
  refused(3, {"model.safetensors.index.json", "model-00001-of-00002.safetensors", "stale"});
}

TEST_F(BadCheckpoint, ValuesThatAreNotFiniteAreNamed) {
  for (const std::string module :
      {"layers.1.mlp.up_proj", "layers.0.linear_attn.in_proj_z", "layers.1.self_attn.v_proj"}) {
    write();
    edit([&](TensorMap& tensors) { tensors.at(kTrunk + module + ".weight").set(5, kNan); });
    refused(3, {kTrunk + module + ".weight", "value 5 is nan"});
    expect_refused({"generate", folder_.string(), "--json", "--prompt-ids", "1,2", "--depth", "0"}, 3, {module});
  }
  for (const std::string norm : {"norm.weight", "layers.0.input_layernorm.weight"}) {
    write();
    edit([&](TensorMap& tensors) { tensors.at(kTrunk + norm).set(2, kNan); });
    refused(3, {kTrunk + norm, "nan"});
  }
}

TEST_F(BadCheckpoint, TiedAndUntiedOutputMatrices) {  // B52
  write(tiny_tied());
  const Json tied = generate_json(folder_.string(), {"--prompt-ids", "1,2,3", "--max-tokens", "12"});
  edit([](TensorMap& tensors) { tensors["lm_head.weight"] = tensors.at(kTrunk + "embed_tokens.weight"); });
  EXPECT_EQ(generate_json(folder_.string(), {"--prompt-ids", "1,2,3", "--max-tokens", "12"})["ids"], tied["ids"]);
  expect_parts(
      foresay({"generate", folder_.string(), "--prompt-ids", "1", "--max-tokens", "1"}).err, {"lm_head", "ignored"});

  write(tiny());
  edit([](TensorMap& tensors) { tensors.erase("lm_head.weight"); });
  refused(3, {"lm_head.weight", "tie_word_embeddings"});
}

TEST_F(BadCheckpoint, TokenizersThatAreMissingOrBroken) {
  const auto text = [&](int status, const std::vector<std::string>& parts) {
    expect_refused({"generate", folder_.string(), "--prompt", "x"}, status, parts);
  };
  write();
  text(3, {"tokenizer.json", folder_.string()});
  expect_refused({"generate", folder_.string(), "--prompt-ids", "1", "--stop", "x"}, 3, {"tokenizer.json"});
  for (const std::string broken : {"", "{", "[]", "{\"model\": 5}", "\xFF\xFE"}) {
    write_text(folder_ / "tokenizer.json", broken);
    text(3, {"tokenizer.json"});
    const Outcome ids = foresay({"generate", folder_.string(), "--json", "--prompt-ids", "1,2", "--max-tokens", "2"});
    EXPECT_EQ(json_of(ids)["ids"].size(), 2u);  // ids alone need none
    expect_parts(ids.err, {"warning: ", "tokenizer.json"});
  }
}

TEST_F(BadCheckpoint, ChatTemplatesThatAreMissingBrokenOrRaise) {
  const auto chat = [&](int status, const std::vector<std::string>& parts) {
    expect_refused({"generate", folder_.string(), "--chat", "--prompt", "x"}, status, parts);
  };
  copy_bundled(folder_);
  fs::remove(folder_ / "chat_template.jinja");
  chat(3, {"chat template", "chat_template.jinja"});
  write_text(folder_ / "chat_template.jinja", "{% for m in messages %}");
  chat(3, {"template"});
  write_text(folder_ / "chat_template.jinja", "{{ raise_exception('no user turns here') }}");
  chat(2, {"no user turns here"});
  write_text(folder_ / "chat_template.jinja", "{{ messages.nothing.nothing }}");
  chat(2, {"template"});
  write_text(folder_ / "chat_template.jinja", "");
  chat(2, {"prompt", "empty"});
}

TEST_F(BadCheckpoint, OddTokenizerConfigsDoNotMatterToIds) {
  copy_bundled(folder_);
  edit_json(folder_ / "tokenizer_config.json", [](auto& config) { config["eos_token"] = {{"content", 5}}; });
  EXPECT_EQ(generate_json(folder_.string(), {"--prompt", "x", "--max-tokens", "2"})["ids"].size(), 2u);
  edit_json(folder_ / "tokenizer_config.json", [](auto& config) { config["eos_token"] = {{"content", "<|im_end|>"}}; });
  EXPECT_EQ(generate_json(folder_.string(), {"--prompt", "x", "--max-tokens", "2"})["ids"].size(), 2u);
}

}  // namespace
}  // namespace foresay
