// The JSON files beside a random checkpoint's weights, with the keys that released ones have.
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/bench/shape_parts.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr AddedToken kAdded[] = {{"<|endoftext|>", true}, {"<|im_start|>", true}, {"<|im_end|>", true},
    {"<|object_ref_start|>", true}, {"<|object_ref_end|>", true}, {"<|box_start|>", true}, {"<|box_end|>", true},
    {"<|quad_start|>", true}, {"<|quad_end|>", true}, {"<|vision_start|>", true}, {"<|vision_end|>", true},
    {"<|vision_pad|>", true}, {"<|image_pad|>", true}, {"<|video_pad|>", true}, {"<tool_call>", false},
    {"</tool_call>", false}, {"<|fim_prefix|>", false}, {"<|fim_middle|>", false}, {"<|fim_suffix|>", false},
    {"<|fim_pad|>", false}, {"<|repo_name|>", false}, {"<|file_sep|>", false}, {"<tool_response>", false},
    {"</tool_response>", false}, {"<think>", false}, {"</think>", false}};

constexpr int kPadding = 250;  // rows of the embedding that no token has

constexpr const char* kChatTemplate =
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}";

void write(const std::filesystem::path& file, const Json& document) {
  std::ofstream out(file);
  out << document.dump(2) << '\n';
  out.close();
  if (!out) fail(ErrorCode::capacity, "[bench] {}: cannot write it; free disk space", file.string());
}

Json text_config(const Shape& s) {
  Json types = Json::array();
  for (int i = 0; i < s.layers; ++i) types.push_back((i + 1) % 4 == 0 ? "full_attention" : "linear_attention");
  const int pairs = s.head_dim / 8;
  return {{"vocab_size", s.vocab}, {"hidden_size", s.hidden}, {"intermediate_size", s.intermediate},
      {"num_hidden_layers", s.layers}, {"num_attention_heads", s.heads}, {"num_key_value_heads", s.kv_heads},
      {"head_dim", s.head_dim}, {"rms_norm_eps", 1e-6}, {"hidden_act", "silu"}, {"max_position_embeddings", 262144},
      {"tie_word_embeddings", true}, {"attention_bias", false}, {"attention_dropout", 0.0},
      {"linear_conv_kernel_dim", 4}, {"linear_key_head_dim", s.linear_head_dim},
      {"linear_value_head_dim", s.linear_head_dim}, {"linear_num_key_heads", s.key_heads},
      {"linear_num_value_heads", s.value_heads}, {"layer_types", types},
      {"rope_parameters", {{"rope_theta", 10000000.0}, {"partial_rotary_factor", 0.25},
                              {"mrope_section", {(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3}},
                              {"mrope_interleaved", true}, {"type", "default"}}},
      {"eos_token_id", first_added_id(s)}, {"model_type", "qwen3_5_text"}, {"dtype", "bfloat16"},
      {"full_attention_interval", 4}, {"attn_output_gate", true}, {"mamba_ssm_dtype", "float32"},
      {"mtp_num_hidden_layers", 1}, {"mtp_use_dedicated_embeddings", false}, {"use_cache", true}};
}

Json quantization(const Packing& packing) {
  const auto geometry = [](int bits) { return Json{{"group_size", 64}, {"bits", bits}, {"mode", "affine"}}; };
  Json declared = packing.bits == 16 ? Json::object() : geometry(packing.bits);
  if (packing.head_bits != packing.bits) {
    declared["language_model.model.embed_tokens"] = packing.head_bits == 16 ? Json(false) : geometry(packing.head_bits);
  }
  return declared;
}

}  // namespace

const char* const kPretokenise =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::span<const AddedToken> added_tokens() {
  return kAdded;
}

int vocab_limit(const Shape& shape) {
  return shape.vocab - kPadding;
}

int first_added_id(const Shape& shape) {
  return vocab_limit(shape) - static_cast<int>(std::size(kAdded));
}

void write_configs(const std::filesystem::path& folder, const Shape& shape, const Packing& packing) {
  const int first = first_added_id(shape);
  const Json ends = {first + 2, first};
  Json config = {{"architectures", {"Qwen3_5ForConditionalGeneration"}}, {"eos_token_id", ends},
      {"model_type", "qwen3_5"}, {"text_config", text_config(shape)}, {"tie_word_embeddings", true},
      {"mlx_lm_extra_tensors", {{"mtp_file", "mtp/weights.safetensors"}}}};
  if (const Json declared = quantization(packing); !declared.empty()) config["quantization"] = declared;
  write(folder / "config.json", config);
  write(folder / "generation_config.json",
      {{"do_sample", true}, {"eos_token_id", ends}, {"temperature", 0.7}, {"top_k", 20}, {"top_p", 0.95}});

  Json added = Json::object();
  for (std::size_t i = 0; i < std::size(kAdded); ++i) {
    added[std::to_string(static_cast<std::size_t>(first) + i)] = {{"content", kAdded[i].content}, {"lstrip", false},
        {"normalized", false}, {"rstrip", false}, {"single_word", false}, {"special", kAdded[i].special}};
  }
  write(folder / "tokenizer_config.json",
      {{"add_bos_token", false}, {"add_prefix_space", false}, {"added_tokens_decoder", added}, {"bos_token", nullptr},
          {"chat_template", kChatTemplate}, {"clean_up_tokenization_spaces", false}, {"eos_token", "<|im_end|>"},
          {"errors", "replace"}, {"model_max_length", 262144}, {"pad_token", "<|endoftext|>"},
          {"split_special_tokens", false}, {"pretokenize_regex", kPretokenise}, {"tokenizer_class", "Qwen2Tokenizer"},
          {"unk_token", nullptr}});
}

}  // namespace foresay::cli
