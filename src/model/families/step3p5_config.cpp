#include "model/families/step3p5_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace foresay {
namespace {

constexpr int kMost = 1 << 24;  // of any dimension: keeps products inside 64 bits and typos out of the allocator

/// A number for every layer: one for all, or a list with an entry per layer.
class PerLayer {
 public:
  PerLayer(const Config& text, const std::string& key, double fallback) : text_(text), key_(key), fallback_(fallback) {
    if (!text.has(key)) return;
    const nlohmann::json& value = text.json().at(key);
    if (!value.is_array()) {
      fallback_ = text.number(key, 0, 1e15);
      return;
    }
    for (const auto& item : value) {
      if (!item.is_number() && !item.is_null()) {
        fail(ErrorCode::checkpoint, "[load] {}: {}: expected a number or a list of numbers, found {} in it",
            text.where(), key, item.dump());
      }
      list_.push_back(item.is_null() ? 0 : item.get<double>());
    }
  }
  /// The entry of a layer; what a missing entry means is the caller's affair.
  [[nodiscard]] std::optional<double> at(int layer) const {
    if (list_.empty()) return fallback_;
    return layer < static_cast<int>(list_.size()) ? std::optional(list_[static_cast<std::size_t>(layer)])
                                                  : std::nullopt;
  }
  [[nodiscard]] double at(int layer, double missing) const { return at(layer).value_or(missing); }

 private:
  const Config& text_;
  std::string key_;
  double fallback_;
  std::vector<double> list_;
};

/// Slows pairs whose wavelength is long against the trained context (rope_type llama3); no factor on the scores.
void scale_llama3(const Config& scaling, std::vector<double>& inv_freq) {
  const std::string type = scaling.maybe_string("rope_type").value_or(scaling.maybe_string("type").value_or("default"));
  if (type == "default") return;
  if (type != "llama3") {
    fail(ErrorCode::unsupported, "[load] {}: rope_type \"{}\" is not supported; expected llama3 or default",
        scaling.where(), type);
  }
  const double factor = scaling.number("factor", 1, 1e6);
  const double original = scaling.number("original_max_position_embeddings", 1, 1e9);
  const double low = scaling.number("low_freq_factor", 1e-6, 1e6), high = scaling.number("high_freq_factor", 1e-6, 1e6);
  if (high <= low) {
    fail(ErrorCode::checkpoint, "[load] {}: high_freq_factor {} is not above low_freq_factor {}", scaling.where(), high,
        low);
  }
  for (double& inv : inv_freq) {
    const double wave = 2 * std::numbers::pi / inv;
    if (wave < original / high) continue;
    if (wave > original / low) {
      inv /= factor;
      continue;
    }
    const double share = (original / wave - low) / (high - low);
    inv = (1 - share) * inv / factor + share * inv;
  }
}

/// "3,4,5", or a list of numbers.
std::optional<std::vector<int>> read_sparse(const Config& text) {
  if (!text.has("moe_layers_enum")) return std::nullopt;
  if (text.json().at("moe_layers_enum").is_array()) return text.maybe_integers("moe_layers_enum", 0, kMost);
  const std::string list = text.string("moe_layers_enum");
  std::vector<int> layers;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    int layer = 0;
    const char* const first = list.data() + at;
    const char* const last = list.data() + end;
    const auto [stopped, error] = std::from_chars(first, last, layer);
    if (error != std::errc() || stopped != last) {
      fail(ErrorCode::checkpoint, "[load] {}: moe_layers_enum: expected layer numbers such as \"3,4,5\", found \"{}\"",
          text.where(), list);
    }
    layers.push_back(layer);
    at = end + 1;
  }
  return layers;
}

void refuse_variants(const Config& text) {
  const auto refuse_unless = [&](bool ok, const char* what) {
    if (!ok) fail(ErrorCode::unsupported, "[load] {}: {}", text.where(), what);
  };
  refuse_unless(!text.maybe_boolean("sink").value_or(false), "sink is true; no release has attention sinks");
  refuse_unless(
      text.maybe_boolean("use_qk_norm").value_or(true), "use_qk_norm is false; every release has these norms");
  refuse_unless(text.maybe_string("att_impl_type").value_or("GQA") == "GQA", "att_impl_type must be GQA");
  refuse_unless(text.maybe_string("moe_router_activation").value_or("sigmoid") == "sigmoid",
      "moe_router_activation must be sigmoid");
  refuse_unless(!text.has("use_rope_layers") || text.json().at("use_rope_layers").empty(),
      "use_rope_layers names layers; expected an empty list, which rotates in every layer");
}

/// Reads layer `index` of the config's lists.
Step35Layer read_layer(const Config& text, const std::vector<std::string>& types, int index, int head_dim) {
  Step35Layer layer;
  const std::string& type = types.at(static_cast<std::size_t>(index));
  const bool sliding = type == "sliding_attention";
  layer.heads = text.integer("num_attention_heads", 1, 65536);
  layer.kv_heads = text.integer("num_attention_groups", 1, 65536);
  if (const auto other = text.maybe_object("attention_other_setting"); other && sliding) {
    layer.heads = other->maybe_integer("num_attention_heads", 1, 65536).value_or(layer.heads);
    layer.kv_heads = other->maybe_integer("num_attention_groups", 1, 65536).value_or(layer.kv_heads);
  }
  if (layer.heads % layer.kv_heads != 0) {
    fail(ErrorCode::checkpoint, "[load] {}: {} query heads of layer {} are no multiple of its {} key and value heads",
        text.where(), layer.heads, index, layer.kv_heads);
  }
  layer.window = sliding ? text.maybe_integer("sliding_window", 1, kMost).value_or(512) : 0;

  const double theta = PerLayer(text, "rope_theta", 1e4).at(index, 1e4);
  const double share = PerLayer(text, "partial_rotary_factors", 1).at(index, 1);
  const int rotary = static_cast<int>(head_dim * share);
  if (!(theta >= 1) || rotary < 2 || rotary > head_dim || rotary % 2 != 0) {
    fail(ErrorCode::checkpoint,
        "[load] {}: layer {}: rope_theta {} and partial_rotary_factors {} of {} dimensions make no "
        "rotation",
        text.where(), index, theta, share, head_dim);
  }
  for (int j = 0; j < rotary / 2; ++j) layer.rope.inv_freq.push_back(std::pow(theta, -2.0 * j / rotary));
  const auto scaled = text.maybe_strings("yarn_only_types").value_or(std::vector<std::string>{});
  if (const auto scaling = text.maybe_object("rope_scaling");
      scaling && (scaled.empty() || std::ranges::find(scaled, type) != scaled.end())) {
    scale_llama3(*scaling, layer.rope.inv_freq);
  }
  layer.limit = static_cast<float>(PerLayer(text, "swiglu_limits", 0).at(index, 0));
  layer.shared_limit = static_cast<float>(PerLayer(text, "swiglu_limits_shared", 0).at(index, 0));
  return layer;
}

}  // namespace

int step3p5_head_layers(const Checkpoint& checkpoint) {
  const Config &text = checkpoint.text_config(), &top = checkpoint.config();
  for (const auto& [config, key] : {std::pair{&text, "num_nextn_predict_layers"}, {&text, "mtp_num_hidden_layers"},
           {&top, "num_nextn_predict_layers"}}) {
    if (const int count = config->maybe_integer(key, 0, 1000).value_or(0); count > 0) return count;
  }
  return 0;
}

Step35Config Step35Config::read(const Checkpoint& checkpoint) {
  const Config& text = checkpoint.text_config();
  Step35Config c;
  c.hidden = text.integer("hidden_size", 1, kMost);
  c.layers = text.integer("num_hidden_layers", 1, 10000);
  c.vocab = text.integer("vocab_size", 1, kMost);
  c.intermediate = text.integer("intermediate_size", 1, kMost);
  c.head_dim = text.integer("head_dim", 1, 65536);
  c.context = text.maybe_integer("max_position_embeddings", 1, 1 << 30)
                  .value_or(text.maybe_integer("max_seq_len", 1, 1 << 30).value_or(262144));
  c.norm_eps = static_cast<float>(text.maybe_number("rms_norm_eps", 0, 1).value_or(1e-5));
  c.tied = text.maybe_boolean("tie_word_embeddings")
               .value_or(checkpoint.config().maybe_boolean("tie_word_embeddings").value_or(false));
  refuse_variants(text);

  const auto types = text.maybe_strings("layer_types");
  if (!types) {
    fail(ErrorCode::checkpoint,
        "[load] {}: layer_types is missing, and tools disagree about what that means; add the list", text.where());
  }
  for (const std::string& type : *types) {
    if (type == "full_attention" || type == "sliding_attention") continue;
    fail(ErrorCode::unsupported, "[load] {}: layer_types holds \"{}\"; expected full_attention or sliding_attention",
        text.where(), type);
  }
  const int listed = static_cast<int>(types->size());
  if (listed < c.layers) {
    fail(ErrorCode::checkpoint, "[load] {}: layer_types has {} entries, num_hidden_layers says {}", text.where(),
        listed, c.layers);
  }
  for (int i = 0; i < c.layers; ++i) c.trunk.push_back(read_layer(text, *types, i, c.head_dim));
  for (int i = 0; i < step3p5_head_layers(checkpoint); ++i) {
    if (c.layers + i < listed) {
      c.heads.push_back(read_layer(text, *types, c.layers + i, c.head_dim));
      continue;
    }
    // Lists for the trunk alone: a head is like its first sliding layer, or its first.
    const auto sliding = std::find(types->begin(), types->end(), "sliding_attention");
    Step35Layer like = c.trunk[sliding == types->end() ? 0 : static_cast<std::size_t>(sliding - types->begin())];
    like.limit = like.shared_limit = 0;
    c.heads.push_back(std::move(like));
  }

  c.sparse = read_sparse(text);
  c.chosen = text.maybe_integer("moe_top_k", 1, 65536).value_or(0);
  c.expert_width = text.maybe_integer("moe_intermediate_size", 1, kMost).value_or(0);
  c.shared_width = text.maybe_integer("share_expert_dim", 0, kMost)
                       .value_or(text.maybe_integer("share_expert_dims", 0, kMost).value_or(0));
  c.normalise_chosen = text.maybe_boolean("norm_expert_weight").value_or(true);
  c.head_gates = text.maybe_boolean("use_head_wise_attn_gate").value_or(true);
  c.router_bias = text.maybe_boolean("use_moe_router_bias").value_or(true);
  if (const auto factor = text.maybe_number("moe_router_scaling_factor", 0, 1e6)) {
    c.router_factor = static_cast<float>(*factor);
  }
  return c;
}

}  // namespace foresay
