// The qwen3_5 family (Qwen3.5, 3.6, 3.8 dense): gated attention and GatedDeltaNet layers, one MTP layer that is reused
// at every draft step. Mathematics and tensor names: docs/families/qwen3_5.md.
#include "model/families/qwen3_5_config.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "model/layers/layers.h"
#include "model/registry.h"
#include "model/weight_source.h"

namespace foresay {
namespace {

constexpr int kMaxDepth = 8;

/// One decoder layer: a mixer of either kind and a gated MLP, each behind its norm.
struct Layer {
  Vector input_norm, post_norm;
  std::optional<Attention> attention;
  std::optional<GatedDeltaNet> recurrent;
  GatedMlp mlp;
};

struct Head {
  Vector embedding_norm, hidden_norm, final_norm;
  Matrix fusion;  ///< [D, 2D]
  Layer layer;    ///< always full attention
};

class Qwen35 final : public Model {
 public:
  Qwen35(Ops& ops, Qwen35Config config) : ops_(ops), config_(std::move(config)) {}

  [[nodiscard]] const ModelInfo& info() const override { return info_; }
  [[nodiscard]] const Contract& contract() const override { return contract_; }
  [[nodiscard]] Ops& ops() const override { return ops_; }

  [[nodiscard]] std::unique_ptr<CacheSet> make_caches() const override;
  [[nodiscard]] std::unique_ptr<CacheSet> make_head_caches() const override;
  [[nodiscard]] Forward forward(const Pass& pass) const override;
  [[nodiscard]] HeadForward draft(const HeadPass& pass) const override;

  void load_trunk(WeightSource& source, bool zero_centred);
  void load_head(WeightSource& source, bool zero_centred);

  ModelInfo info_;
  Contract contract_;

 private:
  [[nodiscard]] AttentionSpec attention_spec() const;
  [[nodiscard]] KvShape kv_shape() const { return {config_.kv_heads, config_.head_dim, config_.head_dim}; }
  Layer load_layer(WeightSource& source, const std::string& prefix, bool full_attention, bool zero_centred);
  void require_head() const;

  Ops& ops_;
  Qwen35Config config_;
  Matrix embedding_, output_;
  std::vector<Layer> layers_;
  Vector final_norm_;
  std::optional<Head> head_;
};

/// The slices of a pass with the caches of one layer.
std::vector<CacheSlice> layer_slices(const std::vector<Slice>& slices, int layer) {
  std::vector<CacheSlice> out;
  for (const Slice& slice : slices)
    out.push_back({slice.first, slice.count, &slice.caches->layer(layer), slice.provisional});
  return out;
}

AttentionSpec Qwen35::attention_spec() const {
  AttentionSpec spec;
  spec.heads = config_.heads;
  spec.kv_heads = config_.kv_heads;
  spec.head_dim = config_.head_dim;
  spec.rope = config_.rope;
  spec.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  spec.norm_eps = config_.norm_eps;
  spec.output_gate = true;
  return spec;
}

Layer Qwen35::load_layer(WeightSource& source, const std::string& prefix, bool full_attention, bool zero_centred) {
  Layer layer;
  layer.input_norm = source.gain(prefix + "input_layernorm.weight", config_.hidden, zero_centred);
  layer.post_norm = source.gain(prefix + "post_attention_layernorm.weight", config_.hidden, zero_centred);
  if (full_attention) {
    layer.attention = Attention::load(source, prefix + "self_attn.", config_.hidden, attention_spec(), zero_centred);
  } else {
    layer.recurrent =
        GatedDeltaNet::load(source, prefix + "linear_attn.", config_.hidden, config_.recurrent, config_.norm_eps, ops_);
  }
  layer.mlp = GatedMlp::load(source, prefix + "mlp.", config_.hidden, config_.intermediate);
  return layer;
}

void Qwen35::load_trunk(WeightSource& source, bool zero_centred) {
  embedding_ = source.matrix("embed_tokens", config_.vocab, config_.hidden);
  for (int i = 0; i < config_.layers; ++i) {
    layers_.push_back(load_layer(
        source, fmt::format("layers.{}.", i), config_.full_attention[static_cast<std::size_t>(i)], zero_centred));
  }
  final_norm_ = source.gain("norm.weight", config_.hidden, zero_centred);
  output_ = config_.tied ? embedding_ : source.matrix("lm_head", config_.vocab, config_.hidden);
}

void Qwen35::load_head(WeightSource& source, bool zero_centred) {
  Head head;
  head.embedding_norm = source.gain("pre_fc_norm_embedding.weight", config_.hidden, zero_centred);
  head.hidden_norm = source.gain("pre_fc_norm_hidden.weight", config_.hidden, zero_centred);
  head.final_norm = source.gain("norm.weight", config_.hidden, zero_centred);
  head.fusion = source.matrix("fc", config_.hidden, 2 * config_.hidden);
  head.layer = load_layer(source, "layers.0.", /*full_attention=*/true, zero_centred);
  head_ = std::move(head);
}

std::unique_ptr<CacheSet> Qwen35::make_caches() const {
  std::vector<std::unique_ptr<Cache>> caches;
  for (const bool full : config_.full_attention) {
    caches.push_back(full ? ops_.make_kv_cache(kv_shape()) : ops_.make_recurrent_cache(config_.recurrent));
  }
  return std::make_unique<CacheSet>(std::move(caches));
}

std::unique_ptr<CacheSet> Qwen35::make_head_caches() const {
  require_head();
  std::vector<std::unique_ptr<Cache>> caches;
  caches.push_back(ops_.make_kv_cache(kv_shape()));
  return std::make_unique<CacheSet>(std::move(caches));
}

void Qwen35::require_head() const {
  if (!head_) fail(ErrorCode::internal, "[qwen3_5] the model was loaded without its head");
}

Forward Qwen35::forward(const Pass& pass) const {
  const std::vector<int> rows = all_rows(static_cast<int>(pass.tokens.size()));
  Tensor x = ops_.embed(embedding_, pass.tokens);  // [R, D]
  for (int i = 0; i < config_.layers; ++i) {
    const Layer& layer = layers_[static_cast<std::size_t>(i)];
    const std::vector<CacheSlice> slices = layer_slices(pass.slices, i);
    const Tensor n = ops_.rms_norm(x, layer.input_norm, config_.norm_eps);
    x = ops_.add(x,
        layer.attention ? layer.attention->forward(ops_, n, rows, slices) : layer.recurrent->forward(ops_, n, slices));
    x = ops_.add(x, layer.mlp.forward(ops_, ops_.rms_norm(x, layer.post_norm, config_.norm_eps)));
  }
  Forward result;
  result.pre_norm = x;
  result.post_norm = ops_.rms_norm(x, final_norm_, config_.norm_eps);
  result.logits = ops_.linear(ops_.select(result.post_norm, pass.logit_rows), output_);  // [n, V]
  return result;
}

HeadForward Qwen35::draft(const HeadPass& pass) const {
  require_head();
  const Head& head = *head_;
  const Tensor e = ops_.rms_norm(ops_.embed(embedding_, pass.tokens), head.embedding_norm, config_.norm_eps);  // [R, D]
  const Tensor h = ops_.rms_norm(pass.hidden, head.hidden_norm, config_.norm_eps);                             // [R, D]
  // [e, h] is what released fusion matrices were trained on; [h, e] also loads and shows only as poor acceptance.
  const bool embedding_first = contract_.concat_order.value == ConcatOrder::embedding_hidden;
  Tensor x = ops_.linear(embedding_first ? ops_.concat(e, h) : ops_.concat(h, e), head.fusion);  // [R, 2D] -> [R, D]
  const Tensor n = ops_.rms_norm(x, head.layer.input_norm, config_.norm_eps);
  const Tensor mixed =
      head.layer.attention->forward(ops_, n, pass.output_rows, layer_slices(pass.slices, 0));  // [n, D]
  if (pass.output_rows.empty()) return {};

  x = ops_.add(ops_.select(x, pass.output_rows), mixed);
  x = ops_.add(x, head.layer.mlp.forward(ops_, ops_.rms_norm(x, head.layer.post_norm, config_.norm_eps)));
  const Tensor m = ops_.rms_norm(x, head.final_norm, config_.norm_eps);
  return {contract_.recycled_hidden.value == HiddenState::post_norm ? m : x, ops_.linear(m, output_)};
}

/// Names without the prefix of either layout: "layers.0.mlp.gate_proj.weight", "embed_tokens.weight", "lm_head.weight".
std::map<std::string, TensorView> internal_names(const Checkpoint& checkpoint) {
  std::map<std::string, TensorView> named;
  for (const auto& [name, view] : checkpoint.trunk()) {
    std::string_view rest = name;
    for (const std::string_view prefix :
        {"model.language_model.", "language_model.model.", "language_model.", "model."}) {
      if (rest.starts_with(prefix)) {
        rest.remove_prefix(prefix.size());
        break;
      }
    }
    if (rest.ends_with("rotary_emb.inv_freq")) continue;  // a buffer that some exporters write; the config defines it
    const auto [at, inserted] = named.emplace(std::string(rest), view);
    if (!inserted)
      fail(ErrorCode::checkpoint, "[load] {} and {} are the same parameter under two prefixes", at->second.name, name);
  }
  return named;
}

/// Raw or MLX, decided once for the whole trunk and never from the presence of a head (specs/qwen3_5 2.2).
Decided<NormEncoding> decide_trunk_norms(const Checkpoint& checkpoint, const Qwen35Config& config, Report& report) {
  bool raw_prefix = false, mlx_prefix = false, scales = false;
  std::optional<bool> conv_raw;
  std::string conv_name;
  for (const auto& [name, view] : checkpoint.trunk()) {
    raw_prefix |= name.starts_with("model.language_model.");
    mlx_prefix |= name.starts_with("language_model.");
    scales |= name.ends_with(".scales");
    if (!name.ends_with(".linear_attn.conv1d.weight") || view.shape.size() != 3) continue;
    const bool raw = view.shape[2] != 1;
    if (conv_raw && *conv_raw != raw)
      fail(ErrorCode::checkpoint, "[load] {} and {} are in different layouts", conv_name, name);
    conv_raw = raw;
    conv_name = fmt::format("{} is {}", name, describe_shape(view.shape));
  }
  const auto format = checkpoint.trunk_metadata().find("format");
  const bool mlx_format = format != checkpoint.trunk_metadata().end() && format->second == "mlx";
  const bool looks_mlx = mlx_prefix || scales || mlx_format;
  if (conv_raw) {
    if (config.recurrent.conv_kernel == 1)
      fail(ErrorCode::unsupported, "[load] a convolution of one tap hides the layout");
    if (*conv_raw == looks_mlx || (!*conv_raw && raw_prefix)) {
      report.warn(fmt::format("the convolution says {} layout, but names or metadata look {}; going by the convolution",
          *conv_raw ? "Hugging Face" : "MLX", looks_mlx ? "MLX" : "Hugging Face"));
    }
    return {*conv_raw ? NormEncoding::zero_centred : NormEncoding::absolute, conv_name};
  }
  return {looks_mlx ? NormEncoding::absolute : NormEncoding::zero_centred,
      looks_mlx ? "MLX names, scales or metadata" : "Hugging Face names"};
}

double mean(const TensorView& view) {
  const std::vector<float> values = view.to_float();
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(std::max<std::size_t>(1, values.size()));
}

/// One decision for all seven norms of the head (specs/qwen3_5 4.5). A rule per tensor would leave q_norm, k_norm and
/// norm unshifted.
Decided<NormEncoding> decide_head_norms(const Checkpoint& checkpoint, const Qwen35Config& config,
    const WeightSource& head, const ContractOverrides& overrides, NormEncoding trunk) {
  if (overrides.head_norms) return {*overrides.head_norms, "asked for"};
  const Config& manifest = checkpoint.head().manifest;
  if (manifest.json().value("artifact_schema_version", nlohmann::json()) == 1 &&
      manifest.json().value("rmsnorm_weight_format", nlohmann::json()) == "mlx_gamma") {
    return {NormEncoding::absolute, "manifest.json: rmsnorm_weight_format is mlx_gamma"};
  }
  if (config.head_norms) return *config.head_norms;
  if (checkpoint.head().in_trunk_shards && trunk == NormEncoding::zero_centred) {
    return {NormEncoding::zero_centred, "stored in the shards of a Hugging Face trunk"};
  }
  std::optional<double> highest_qk, lowest_input;
  for (const char* name : {"layers.0.self_attn.q_norm.weight", "layers.0.self_attn.k_norm.weight"}) {
    if (const TensorView* view = head.peek(name)) highest_qk = std::max(highest_qk.value_or(-1e9), mean(*view));
  }
  for (const char* name : {"layers.0.input_layernorm.weight", "layers.0.post_attention_layernorm.weight",
           "pre_fc_norm_hidden.weight", "pre_fc_norm_embedding.weight"}) {
    if (const TensorView* view = head.peek(name)) lowest_input = std::min(lowest_input.value_or(1e9), mean(*view));
  }
  const bool shift = highest_qk && lowest_input && *highest_qk < 1.25 && *lowest_input < 0.5;
  return {shift ? NormEncoding::zero_centred : NormEncoding::absolute,
      fmt::format(
          "means: highest of q/k norms {:.2f} (zero-centred below 1.25), lowest of the input norms {:.2f} (below 0.5)",
          highest_qk.value_or(0), lowest_input.value_or(0))};
}

void check_head(const Checkpoint& checkpoint, const Qwen35Config& config, NormEncoding encoding) {
  if (config.head_layers > 1) {
    fail(ErrorCode::unsupported, "config.json declares {} MTP layers; checkpoints of this family have one",
        config.head_layers);
  }
  for (const auto& [name, view] : checkpoint.head().tensors) {
    if (!name.ends_with("norm.weight") && !name.ends_with("layernorm.weight") && !name.starts_with("pre_fc_norm"))
      continue;
    const double gain = mean(view) + (encoding == NormEncoding::zero_centred ? 1.0 : 0.0);
    if (!(std::abs(gain) > 0.05)) {
      fail(ErrorCode::checkpoint, "{} in {} has a mean gain of {:.3f}; a norm near zero silences the head", view.name,
          view.file, gain);
    }
  }
}

Contract resolve_contract(const Qwen35Config& config, const ContractOverrides& overrides) {
  Contract contract;
  contract.base_hidden =
      config.hidden_state_mode.value_or(Decided<HiddenState>{HiddenState::post_norm, "family default"});
  if (overrides.base_hidden) contract.base_hidden = {*overrides.base_hidden, "asked for"};
  contract.recycled_hidden = {HiddenState::post_norm, "family default"};
  if (overrides.recycled_hidden) contract.recycled_hidden = {*overrides.recycled_hidden, "asked for"};
  contract.concat_order = {ConcatOrder::embedding_hidden, "family default"};
  if (overrides.concat_order) contract.concat_order = {*overrides.concat_order, "asked for"};
  return contract;
}

}  // namespace

FamilyResult load_qwen3_5(const FamilyRequest& request) {
  const Checkpoint& checkpoint = request.checkpoint;
  Qwen35Config config = Qwen35Config::read(checkpoint, request.report);
  WeightSource trunk(
      "trunk", internal_names(checkpoint), checkpoint.config(), request.ops, request.report, request.storage);
  if (config.tied && trunk.has("lm_head.weight")) {
    request.report.note("tie_word_embeddings is set: the redundant lm_head in the files is ignored");
    for (const char* name : {"lm_head.weight", "lm_head.scales", "lm_head.biases"}) trunk.discard(name);
  } else if (!config.tied && !trunk.has("lm_head.weight")) {
    fail(ErrorCode::checkpoint,
        "[load] lm_head.weight is missing and tie_word_embeddings is false; if the embeddings serve as output matrix, "
        "set tie_word_embeddings to true in config.json");
  }

  auto model = std::make_unique<Qwen35>(request.ops, config);
  model->contract_ = resolve_contract(config, request.overrides);
  model->contract_.trunk_norms = decide_trunk_norms(checkpoint, config, request.report);
  const NormEncoding trunk_norms = model->contract_.trunk_norms.value;
  request.report.note(fmt::format("trunk norms are {}: {}", name_of(trunk_norms), model->contract_.trunk_norms.source));
  model->load_trunk(trunk, trunk_norms == NormEncoding::zero_centred);
  trunk.expect_all_taken();

  FamilyResult result;
  int head_layers = 0;
  if (request.want_head) {
    try {
      if (config.head_layers == 0)
        request.report.note("config.json names no MTP layer, but the files hold one; using it");
      WeightSource head(
          "head", checkpoint.head().tensors, checkpoint.config(), request.ops, request.report, request.storage);
      model->contract_.head_norms = decide_head_norms(checkpoint, config, head, request.overrides, trunk_norms);
      const NormEncoding head_norms = model->contract_.head_norms.value;
      request.report.note(
          fmt::format("head norms are {}: {}", name_of(head_norms), model->contract_.head_norms.source));
      check_head(checkpoint, config, head_norms);
      model->load_head(head, head_norms == NormEncoding::zero_centred);
      head.expect_all_taken();
      head_layers = 1;
    } catch (const Error& error) {  // the trunk can still run; the caller decides (MtpMode)
      result.head_problem = error.what();
    }
  }
  model->info_ = {"qwen3_5", checkpoint.config().string("model_type"), config.layers, config.hidden, config.vocab,
      config.context, head_layers, head_layers > 0 ? kMaxDepth : 0};
  result.model = std::move(model);
  return result;
}

}  // namespace foresay
