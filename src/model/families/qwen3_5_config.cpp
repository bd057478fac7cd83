#include "model/families/qwen3_5_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace foresay {
namespace {

constexpr int kMost = 1 << 24;  // of any dimension: keeps products inside 64 bits and typos out of the allocator

Rope read_rope(const Config& text, int head_dim) {
  const auto nested = text.maybe_object("rope_parameters");
  const Config& source = nested ? *nested : text;
  const double theta = source.number("rope_theta", 1.0, 1e15);
  const double share = source.maybe_number("partial_rotary_factor", 0.0, 1.0).value_or(0.25);
  const int rotary = static_cast<int>(head_dim * share);
  if (rotary < 2 || rotary % 2 != 0) {
    fail(ErrorCode::checkpoint,
        "[load] {}: head_dim {} x partial_rotary_factor {} gives {} rotating dimensions; expected an even number above "
        "0",
        source.where(), head_dim, share, rotary);
  }
  Rope rope;
  for (int j = 0; j < rotary / 2; ++j) rope.inv_freq.push_back(std::pow(theta, -2.0 * j / rotary));

  // New style keeps the scaling fields beside rope_theta; old style in rope_scaling.
  const auto old_style = nested ? std::nullopt : text.maybe_object("rope_scaling");
  const Config& scaling = nested ? *nested : old_style ? *old_style : source;
  std::string type = "default";
  if (nested || old_style) {
    type = scaling.maybe_string("rope_type").value_or(scaling.maybe_string("type").value_or("default"));
  }
  if (type == "default" || type == "mrope") return rope;  // text positions have three equal axes: plain RoPE
  if (type != "yarn") {
    fail(ErrorCode::unsupported, "[load] {}: rope_type \"{}\" is not supported; expected default or yarn",
        scaling.where(), type);
  }
  const double factor = scaling.number("factor", 1.0, 1e6);
  const double original = scaling.number("original_max_position_embeddings", 1.0, 1e9);
  const double beta_fast = scaling.maybe_number("beta_fast", 0.0, 1e6).value_or(32.0);
  const double beta_slow = scaling.maybe_number("beta_slow", 0.0, 1e6).value_or(1.0);
  const auto corner = [&](double beta) {
    return rotary * std::log(original / (beta * 2 * std::numbers::pi)) / (2 * std::log(theta));
  };
  const double low = std::clamp(std::floor(corner(beta_fast)), 0.0, rotary - 1.0);
  double high = std::clamp(std::ceil(corner(beta_slow)), 0.0, rotary - 1.0);
  if (high == low) high += 0.001;
  for (int j = 0; j < rotary / 2; ++j) {
    const double ramp = std::clamp((j - low) / (high - low), 0.0, 1.0);
    double& inv = rope.inv_freq[static_cast<std::size_t>(j)];
    inv = inv / factor * ramp + inv * (1 - ramp);
  }
  rope.amplitude =
      static_cast<float>(scaling.maybe_number("attention_factor", 0.0, 1e6).value_or(0.1 * std::log(factor) + 1.0));
  return rope;
}

std::vector<bool> read_layer_types(const Config& text, int layers) {
  std::vector<bool> full;
  if (const auto types = text.maybe_strings("layer_types")) {
    for (const std::string& type : *types) {
      if (type != "full_attention" && type != "linear_attention") {
        fail(ErrorCode::unsupported, "[load] {}: layer_types holds \"{}\"; expected full_attention or linear_attention",
            text.where(), type);
      }
      full.push_back(type == "full_attention");
    }
    if (static_cast<int>(full.size()) != layers) {
      fail(ErrorCode::checkpoint, "[load] {}: layer_types has {} entries, num_hidden_layers says {}", text.where(),
          full.size(), layers);
    }
    return full;
  }
  const int interval = text.maybe_integer("full_attention_interval", 1, kMost).value_or(4);
  for (int i = 0; i < layers; ++i) full.push_back((i + 1) % interval == 0);
  return full;
}

/// The sizes of a mixture, and which layers have one: all but mlp_only_layers, and of those every
/// decoder_sparse_step-th.
void read_experts(const Config& text, Qwen35Config& c) {
  c.sparse.assign(static_cast<std::size_t>(c.layers), false);
  c.moe.experts = text.maybe_integer("num_experts", 0, 65536).value_or(0);
  if (c.moe.experts == 0) return;
  c.moe.chosen = text.integer("num_experts_per_tok", 1, c.moe.experts);
  c.moe.width = text.integer("moe_intermediate_size", 1, kMost);
  c.moe.shared_width = text.maybe_integer("shared_expert_intermediate_size", 0, kMost).value_or(0);
  c.moe.shared_gated = true;
  c.normalise_chosen = text.maybe_boolean("norm_topk_prob").value_or(true);
  const int step = text.maybe_integer("decoder_sparse_step", 1, kMost).value_or(1);
  for (int i = 0; i < c.layers; ++i) c.sparse[static_cast<std::size_t>(i)] = (i + 1) % step == 0;
  for (const int layer : text.maybe_integers("mlp_only_layers", 0, kMost).value_or(std::vector<int>{})) {
    if (layer < c.layers) c.sparse[static_cast<std::size_t>(layer)] = false;
  }
}

/// First non-zero of the four places that count MTP layers.
int read_head_layers(const Config& text, const Config& top) {
  for (const auto& [config, key] : {std::pair{&text, "mtp_num_hidden_layers"}, {&text, "num_nextn_predict_layers"},
           {&top, "num_nextn_predict_layers"}, {&top, "mtp_num_hidden_layers"}}) {
    const int count = config->maybe_integer(key, 0, 1000).value_or(0);
    if (count > 0) return count;
  }
  return 0;
}

std::optional<Decided<HiddenState>> read_hidden_mode(const Config& text, const Config& top, Report& report) {
  for (const Config* config : {&text, &top}) {
    if (!config->has("mtp_hidden_state_mode")) continue;
    const auto& value = config->json().at("mtp_hidden_state_mode");
    const std::string source = config->where() + ": mtp_hidden_state_mode";
    if (value == "pre_norm") return Decided<HiddenState>{HiddenState::pre_norm, source};
    if (value == "post_norm") return Decided<HiddenState>{HiddenState::post_norm, source};
    report.warn(fmt::format("{} is {}; expected \"post_norm\" or \"pre_norm\"; using post_norm", source, value.dump()));
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Decided<NormEncoding>> read_norm_encoding(const Config& top) {
  const auto decide = [](const std::string& value, const std::string& where) -> Decided<NormEncoding> {
    if (value == "delta" || value == "delta_plus_one" || value == "mlx_delta")
      return {NormEncoding::zero_centred, where};
    if (value == "absolute" || value == "gamma" || value == "mlx_gamma") return {NormEncoding::absolute, where};
    fail(ErrorCode::checkpoint, "{} is \"{}\"; expected delta, delta_plus_one, mlx_delta, absolute, gamma or mlx_gamma",
        where, value);
  };
  for (const char* key : {"mtplx_mtp_norm_encoding", "mtp_norm_encoding"}) {
    if (const auto value = top.maybe_string(key)) return decide(*value, fmt::format("{}: {}", top.where(), key));
  }
  if (const auto quantization = top.maybe_object("mtplx_mtp_quantization")) {
    for (const char* key : {"norm_encoding", "norm_weight_encoding"}) {
      if (const auto value = quantization->maybe_string(key))
        return decide(*value, fmt::format("{}: {}", quantization->where(), key));
    }
  }
  return std::nullopt;
}

}  // namespace

Qwen35Config Qwen35Config::read(const Checkpoint& checkpoint, Report& report) {
  const Config& top = checkpoint.config();
  const Config& text = checkpoint.text_config();
  Qwen35Config c;
  c.hidden = text.integer("hidden_size", 1, kMost);
  c.layers = text.integer("num_hidden_layers", 1, 10000);
  c.vocab = text.integer("vocab_size", 1, kMost);
  read_experts(text, c);
  const bool is_sparse = std::ranges::count(c.sparse, true) == c.layers;
  c.intermediate = is_sparse ? 0 : text.integer("intermediate_size", 1, kMost);
  c.context = text.integer("max_position_embeddings", 1, 1 << 30);
  c.heads = text.integer("num_attention_heads", 1, 65536);
  c.kv_heads = text.integer("num_key_value_heads", 1, 65536);
  c.head_dim = text.maybe_integer("head_dim", 1, 65536).value_or(256);
  c.norm_eps = static_cast<float>(text.maybe_number("rms_norm_eps", 0.0, 1.0).value_or(1e-6));
  if (c.heads % c.kv_heads != 0) {
    fail(ErrorCode::checkpoint, "[load] {}: num_attention_heads {} is not a multiple of num_key_value_heads {}",
        text.where(), c.heads, c.kv_heads);
  }
  RecurrentShape& r = c.recurrent;
  r.key_heads = text.maybe_integer("linear_num_key_heads", 1, 65536).value_or(16);
  r.value_heads = text.maybe_integer("linear_num_value_heads", 1, 65536).value_or(32);
  r.key_dim = text.maybe_integer("linear_key_head_dim", 1, 65536).value_or(128);
  r.value_dim = text.maybe_integer("linear_value_head_dim", 1, 65536).value_or(128);
  r.conv_kernel = text.maybe_integer("linear_conv_kernel_dim", 2, 64).value_or(4);
  if (r.value_heads % r.key_heads != 0) {
    fail(ErrorCode::checkpoint, "[load] {}: linear_num_value_heads {} is not a multiple of linear_num_key_heads {}",
        text.where(), r.value_heads, r.key_heads);
  }
  if (2LL * r.key_heads * r.key_dim + 1LL * r.value_heads * r.value_dim > kMost || 2LL * c.heads * c.head_dim > kMost) {
    fail(ErrorCode::checkpoint, "[load] {}: head counts times head sizes exceed {}", text.where(), kMost);
  }
  r.conv_channels = 2 * r.key_heads * r.key_dim + r.value_heads * r.value_dim;
  c.full_attention = read_layer_types(text, c.layers);
  c.rope = read_rope(text, c.head_dim);

  const auto refuse_unless = [&](bool ok, const char* what) {
    if (!ok) fail(ErrorCode::unsupported, "[load] {}: {}", text.where(), what);
  };
  refuse_unless(
      text.maybe_boolean("attn_output_gate").value_or(true), "attn_output_gate is false; this family is gated");
  refuse_unless(!text.maybe_boolean("attention_bias").value_or(false),
      "attention_bias is true; no checkpoint of this family has biases");
  const std::string gate = text.maybe_string("output_gate_type").value_or("silu");
  refuse_unless(gate == "silu" || gate == "swish", "output_gate_type must be silu or swish");
  refuse_unless(text.maybe_string("hidden_act").value_or("silu") == "silu", "hidden_act must be silu");

  const auto inner = text.maybe_boolean("tie_word_embeddings"), outer = top.maybe_boolean("tie_word_embeddings");
  c.tied = inner.value_or(outer.value_or(false));
  if (inner && outer && *inner != *outer) {
    // The levels differ: believe the files.
    const auto& trunk = checkpoint.trunk();
    c.tied = std::none_of(
        trunk.begin(), trunk.end(), [](const auto& entry) { return entry.first.ends_with("lm_head.weight"); });
    report.warn(fmt::format("tie_word_embeddings differs between {} and {}; the files {} an output matrix",
        text.where(), top.where(), c.tied ? "lack" : "hold"));
  }
  c.head_layers = read_head_layers(text, top);
  c.hidden_state_mode = read_hidden_mode(text, top, report);
  return c;
}

std::optional<Decided<NormEncoding>> read_head_config(const Checkpoint& checkpoint, const Qwen35Config& config) {
  const Config& text = checkpoint.text_config();
  if (config.head_layers > 1) {
    fail(ErrorCode::unsupported, "{} declares {} MTP layers; checkpoints of this family have one", text.where(),
        config.head_layers);
  }
  if (text.maybe_boolean("mtp_use_dedicated_embeddings").value_or(false)) {
    fail(ErrorCode::unsupported, "{}: mtp_use_dedicated_embeddings is true; no released checkpoint has them",
        text.where());
  }
  return read_norm_encoding(checkpoint.config());
}

}  // namespace foresay
