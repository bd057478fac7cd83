// The families of Qwen3-Next and Qwen3.5, 3.6, 3.8: gated attention and GatedDeltaNet layers, dense or with a mixture
// of experts, one MTP layer that is reused at every draft step. Mathematics and tensor names: docs/families/qwen3_5.md.
#include "model/families/qwen3_5_config.h"
#include "model/families/qwen3_5_norms.h"
#include "model/families/qwen3_5_repairs.h"

#include <cmath>
#include <variant>

#include "base/error.h"
#include "model/layers/layers.h"
#include "model/layers/recycle.h"
#include "model/registry.h"
#include "model/weight_source.h"

namespace foresay {
namespace {

constexpr int kMaxDepth = 8;

/// One decoder layer: a mixer of either kind and an MLP of either kind, each behind its norm.
struct Layer {
  Vector input_norm, post_norm;
  std::optional<Attention> attention;
  std::optional<GatedDeltaNet> recurrent;
  std::variant<GatedMlp, Moe> mlp;
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
  [[nodiscard]] HeadCaches make_head_caches() const override;
  [[nodiscard]] Forward forward(const Pass& pass) const override;
  [[nodiscard]] HeadForward draft(const HeadPass& pass) const override;

  void load_trunk(WeightSource& source, bool zero_centred);
  void load_head(WeightSource& source, bool zero_centred);  ///< all or nothing

  ModelInfo info_;
  Contract contract_;

 private:
  [[nodiscard]] AttentionSpec attention_spec() const;
  [[nodiscard]] KvShape kv_shape() const { return {config_.kv_heads, config_.head_dim, config_.head_dim}; }
  Layer load_layer(
      WeightSource& source, const std::string& prefix, bool full_attention, bool sparse, bool zero_centred);
  void require_head() const;
  [[nodiscard]] Tensor mlp_part(const Layer& layer, const Tensor& x) const;  ///< [R, D] behind the mixer -> [R, D]

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

Layer Qwen35::load_layer(
    WeightSource& source, const std::string& prefix, bool full_attention, bool sparse, bool zero_centred) {
  Layer layer;
  layer.input_norm = source.gain(prefix + "input_layernorm.weight", config_.hidden, zero_centred);
  layer.post_norm = source.gain(prefix + "post_attention_layernorm.weight", config_.hidden, zero_centred);
  if (full_attention) {
    layer.attention = Attention::load(source, prefix + "self_attn.", config_.hidden, attention_spec(), zero_centred);
  } else {
    layer.recurrent =
        GatedDeltaNet::load(source, prefix + "linear_attn.", config_.hidden, config_.recurrent, config_.norm_eps, ops_);
  }
  if (sparse) {
    layer.mlp = Moe::load(source, prefix + "mlp.", config_.moe, config_.hidden,
        {.chosen = config_.moe.chosen, .bias = {}, .normalise = config_.normalise_chosen}, ops_);
  } else {
    layer.mlp = GatedMlp::load(source, prefix + "mlp.", config_.hidden, config_.intermediate);
  }
  return layer;
}

void Qwen35::load_trunk(WeightSource& source, bool zero_centred) {
  constexpr ReadShare kLookedUp{0, 0}, kOutput{1, 1};
  const ReadShare read = source.read_share();
  source.set_read_share(config_.tied ? kOutput : kLookedUp);
  embedding_ = source.matrix("embed_tokens", config_.vocab, config_.hidden);
  source.set_read_share(read);
  for (int i = 0; i < config_.layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    layers_.push_back(
        load_layer(source, fmt::format("layers.{}.", i), config_.full_attention[at], config_.sparse[at], zero_centred));
  }
  final_norm_ = source.gain("norm.weight", config_.hidden, zero_centred);
  source.set_read_share(kOutput);
  output_ = config_.tied ? embedding_ : source.matrix("lm_head", config_.vocab, config_.hidden);
}

void Qwen35::load_head(WeightSource& source, bool zero_centred) {
  Head head;
  head.embedding_norm = source.gain("pre_fc_norm_embedding.weight", config_.hidden, zero_centred);
  head.hidden_norm = source.gain("pre_fc_norm_hidden.weight", config_.hidden, zero_centred);
  head.final_norm = source.gain("norm.weight", config_.hidden, zero_centred);
  head.fusion = source.matrix("fc", config_.hidden, 2 * config_.hidden);
  head.layer = load_layer(source, "layers.0.", /*full_attention=*/true, config_.moe.experts > 0, zero_centred);
  head_ = std::move(head);
}

std::unique_ptr<CacheSet> Qwen35::make_caches() const {
  std::vector<std::unique_ptr<Cache>> caches;
  for (const bool full : config_.full_attention) {
    caches.push_back(full ? ops_.make_kv_cache(kv_shape()) : ops_.make_recurrent_cache(config_.recurrent));
  }
  return std::make_unique<CacheSet>(std::move(caches));
}

HeadCaches Qwen35::make_head_caches() const {
  require_head();
  std::vector<std::unique_ptr<Cache>> caches;
  caches.push_back(ops_.make_kv_cache(kv_shape()));
  HeadCaches sets;
  sets.push_back(std::make_unique<CacheSet>(std::move(caches)));
  return sets;
}

void Qwen35::require_head() const {
  if (!head_) fail(ErrorCode::internal, "[qwen3_5] the model was loaded without its head");
}

Tensor Qwen35::mlp_part(const Layer& layer, const Tensor& x) const {
  const Tensor n = ops_.rms_norm(x, layer.post_norm, config_.norm_eps);
  ops_.observe("post_norm", n);
  return std::visit([&](const auto& mlp) { return mlp.forward(ops_, n, x); }, layer.mlp);
}

Forward Qwen35::forward(const Pass& pass) const {
  const std::vector<int> rows = row_range(0, static_cast<int>(pass.tokens.size()));
  Tensor x = ops_.embed(embedding_, pass.tokens);  // [R, D]
  ops_.observe("embed", x);
  for (int i = 0; i < config_.layers; ++i) {
    const TapScope scope(ops_.tap(), "layers.{}.", i);
    const Layer& layer = layers_[static_cast<std::size_t>(i)];
    const std::vector<CacheSlice> slices = layer_slices(pass.slices, i);
    const Tensor n = ops_.rms_norm(x, layer.input_norm, config_.norm_eps);
    ops_.observe("input_norm", n);
    x = layer.attention ? layer.attention->forward(ops_, n, x, rows, slices)
                        : layer.recurrent->forward(ops_, n, x, slices);
    x = mlp_part(layer, x);
  }
  Forward result;
  result.pre_norm = x;
  result.post_norm = ops_.rms_norm(x, final_norm_, config_.norm_eps);
  ops_.observe("final_norm", result.post_norm);
  result.logits = ops_.linear(ops_.select(result.post_norm, pass.logit_rows), output_);  // [n, V]
  return result;
}

HeadForward Qwen35::draft(const HeadPass& pass) const {
  require_head();
  const Head& head = *head_;
  const TapScope scope(ops_.tap(), "mtp.{}.", pass.step);
  const Tensor embedding = ops_.embed(embedding_, pass.tokens);  // [R, D]
  const Tensor e = ops_.rms_norm(embedding, head.embedding_norm, config_.norm_eps);
  const Tensor h = ops_.rms_norm(pass.hidden, head.hidden_norm, config_.norm_eps);  // [R, D]
  ops_.observe("embedding_norm", e);
  ops_.observe("hidden_norm", h);
  // [e, h] is what released fusion matrices were trained on; [h, e] also loads and shows only as poor acceptance.
  const bool embedding_first = contract_.concat_order.value == ConcatOrder::embedding_hidden;
  const Tensor fused =
      ops_.linear(embedding_first ? ops_.concat(e, h) : ops_.concat(h, e), head.fusion);  // [R, 2D] -> [R, D]
  ops_.observe("fused", fused);
  const Tensor n = ops_.rms_norm(fused, head.layer.input_norm, config_.norm_eps);
  ops_.observe("input_norm", n);
  Tensor x = head.layer.attention->forward(
      ops_, n, ops_.select(fused, pass.output_rows), pass.output_rows, layer_slices(pass.slices, 0));  // [n, D]
  if (pass.output_rows.empty()) return {};

  x = mlp_part(head.layer, x);
  const Tensor m = ops_.rms_norm(x, head.final_norm, config_.norm_eps);
  ops_.observe("final_norm", m);
  Tensor logits;  // [logit_rows, V]
  if (!pass.logit_rows.empty()) {
    const Tensor drafting = ops_.select(m, pass.logit_rows);
    logits = pass.vocabulary != nullptr ? ops_.linear_subset(drafting, output_, *pass.vocabulary)
                                        : ops_.linear(drafting, output_);
  }
  const HeadStates states{.pre_norm = x,
      .post_norm = m,
      .fused = ops_.select(fused, pass.output_rows),
      .embedding = ops_.select(embedding, pass.output_rows),
      .previous = ops_.select(pass.hidden, pass.output_rows)};
  return {recycled_state(ops_, contract_.recycled_hidden.value, states), std::move(logits)};
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

Contract resolve_contract(const Qwen35Config& config, const StatedContract& stated) {
  const std::string family = "family default";
  Contract contract;
  contract.base_hidden = stated.base_hidden         ? *stated.base_hidden
                         : config.hidden_state_mode ? *config.hidden_state_mode
                                                    : Decided<HiddenState>{HiddenState::post_norm, family};
  contract.recycled_hidden = stated.recycled_hidden.value_or(Decided<RecycledHidden>{HeadState::post_norm, family});
  contract.concat_order = stated.concat_order.value_or(Decided<ConcatOrder>{ConcatOrder::embedding_hidden, family});
  contract.head_packing = stated.head_packing.value_or(Decided<HeadPacking>{HeadPacking{}, family});
  contract.position_mode = stated.position_mode.value_or(Decided<PositionMode>{PositionMode::cache, family});
  return contract;
}

/// Attaches the head. Throws where it cannot be used; the model is then still a whole trunk.
void attach_head(const FamilyRequest& request, const Qwen35Config& config, Qwen35& model) {
  const Checkpoint& checkpoint = request.checkpoint;
  const auto declared = read_head_config(checkpoint, config);
  if (config.head_layers == 0) request.report.note("config.json names no MTP layer, but the files hold one; using it");
  WeightSource source(
      "head", checkpoint.head().tensors, checkpoint.config(), request.ops, request.report, request.storage);
  const auto norms = decide_head_norms(
      checkpoint, declared, source, request.overrides, request.stated, model.contract_.trunk_norms.value);
  if (!request.overrides.head_norms) check_head_gains(checkpoint, norms.value);  // who insists may try a wrong one
  source.set_packing(model.contract_.head_packing.value);
  repair_head(source, internal_names(checkpoint), config, norms.value == NormEncoding::zero_centred, request.report);
  model.load_head(source, norms.value == NormEncoding::zero_centred);
  source.expect_all_taken();
  model.contract_.head_norms = norms;
  model.info_.head_layers = 1;
  model.info_.max_depth = kMaxDepth;
  request.report.note(fmt::format("head norms are {}: {}", name_of(norms.value), norms.source));
}

}  // namespace

FamilyResult load_qwen3_5(const FamilyRequest& request) {
  const Checkpoint& checkpoint = request.checkpoint;
  const Qwen35Config config = Qwen35Config::read(checkpoint, request.report);
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
  model->info_ = {.family = std::string(request.family),
      .model_type = checkpoint.config().string("model_type"),
      .layers = config.layers,
      .hidden = config.hidden,
      .vocab = config.vocab,
      .context = config.context,
      .turn_ends = {"<|im_end|>", "<|endoftext|>"}};
  model->contract_ = resolve_contract(config, request.stated);
  const auto norms = model->contract_.trunk_norms = decide_trunk_norms(checkpoint, request.report);
  request.report.note(fmt::format("trunk norms are {}: {}", name_of(norms.value), norms.source));
  model->load_trunk(trunk, norms.value == NormEncoding::zero_centred);
  trunk.expect_all_taken();

  FamilyResult result;
  if (request.want_head) result.head_problem = try_head(request, [&] { attach_head(request, config, *model); });
  result.model = std::move(model);
  return result;
}

}  // namespace foresay
