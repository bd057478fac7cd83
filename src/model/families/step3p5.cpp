// The step3p5 family (Step-3.5-Flash, and the text half of Step-3.7): full and sliding attention with a gate per head,
// dense and mixture layers, and MTP layers that are distinct per depth, each with an output matrix of its own.
// Mathematics and tensor names: docs/families/step3p5.md.
#include <algorithm>
#include <cmath>
#include <variant>

#include "base/error.h"
#include "model/families/step3p5_config.h"
#include "model/families/step3p5_names.h"
#include "model/families/step3p5_norms.h"
#include "model/layers/layers.h"
#include "model/layers/moe.h"
#include "model/layers/recycle.h"
#include "model/registry.h"
#include "model/weight_source.h"

namespace foresay {
namespace {

struct Layer {
  Vector input_norm, post_norm;
  Attention attention;
  std::variant<GatedMlp, Moe> mlp;
  KvShape cache;
};

/// One depth.
struct Head {
  Vector embedding_norm, hidden_norm, final_norm;
  Matrix fusion;  ///< eh_proj [D, 2D]
  Matrix output;  ///< [V, D], not the trunk's
  Layer layer;
};

std::vector<CacheSlice> layer_slices(const std::vector<Slice>& slices, int layer) {
  std::vector<CacheSlice> out;
  for (const Slice& slice : slices)
    out.push_back({slice.first, slice.count, &slice.caches->layer(layer), slice.provisional});
  return out;
}

class Step35 final : public Model {
 public:
  Step35(Ops& ops, Step35Config config) : ops_(ops), config_(std::move(config)) {}

  [[nodiscard]] const ModelInfo& info() const override { return info_; }
  [[nodiscard]] const Contract& contract() const override { return contract_; }
  [[nodiscard]] Ops& ops() const override { return ops_; }

  [[nodiscard]] std::unique_ptr<CacheSet> make_caches() const override;
  [[nodiscard]] HeadCaches make_head_caches() const override;
  [[nodiscard]] Forward forward(const Pass& pass) const override;
  [[nodiscard]] HeadForward draft(const HeadPass& pass) const override;

  void load_trunk(WeightSource& source, bool zero_centred);
  void load_heads(WeightSource& source, int depths);  ///< all or nothing; norms are gains by now

  ModelInfo info_;
  Contract contract_;

 private:
  Layer load_layer(WeightSource& source, const std::string& prefix, const Step35Layer& shape, bool zero_centred);
  Moe load_moe(WeightSource& source, const std::string& prefix, const Step35Layer& shape);
  [[nodiscard]] Tensor run_layer(const Layer& layer, const Tensor& x, std::span<const int> query_rows,
      std::span<const CacheSlice> slices) const;  ///< x [R, D] -> [query_rows, D]

  Ops& ops_;
  Step35Config config_;
  Matrix embedding_, output_;
  std::vector<Layer> layers_;
  Vector final_norm_;
  std::vector<Head> heads_;
};

Moe Step35::load_moe(WeightSource& source, const std::string& prefix, const Step35Layer& shape) {
  const TensorView* const router = source.peek(prefix + "gate.weight");
  const bool has_bias = source.has(prefix + "router_bias");
  const int experts = static_cast<int>(router->shape.empty() ? 0 : router->shape.front());  // pruned variants exist
  if (!config_.router_factor || config_.chosen == 0 || config_.expert_width == 0 || config_.chosen > experts) {
    fail(ErrorCode::checkpoint,
        "[load] config.json: {} is a mixture of {} experts: expected moe_router_scaling_factor, moe_intermediate_size "
        "and a moe_top_k that is not larger",
        router->name, experts);
  }
  if (config_.router_bias && !has_bias) {
    fail(ErrorCode::checkpoint, "[load] {}: use_moe_router_bias is set, but no router_bias lies beside it",
        router->name);
  }
  RouterSpec spec{.score = RouterSpec::Score::sigmoid,
      .chosen = config_.chosen,
      .bias = {},
      .normalise = config_.normalise_chosen,
      .factor = *config_.router_factor};
  if (has_bias) spec.bias = ops_.vector(source.values(prefix + "router_bias", experts));
  const MoeShape sizes{.experts = experts,
      .chosen = config_.chosen,
      .width = config_.expert_width,
      .shared_width = config_.shared_width,
      .shared_gated = false};
  Moe moe = Moe::load(source, prefix, sizes, config_.hidden, std::move(spec), ops_);
  moe.experts.limit = shape.limit;
  if (moe.shared) moe.shared->limit = shape.shared_limit;
  return moe;
}

Layer Step35::load_layer(WeightSource& source, const std::string& prefix, const Step35Layer& shape, bool zero_centred) {
  AttentionSpec spec;
  spec.heads = shape.heads;
  spec.kv_heads = shape.kv_heads;
  spec.head_dim = config_.head_dim;
  spec.rope = shape.rope;
  spec.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  spec.norm_eps = config_.norm_eps;
  Layer layer;
  layer.input_norm = source.gain(prefix + "input_layernorm.weight", config_.hidden, zero_centred);
  layer.post_norm = source.gain(prefix + "post_attention_layernorm.weight", config_.hidden, zero_centred);
  layer.attention =
      Attention::load(source, prefix + "self_attn.", config_.hidden, std::move(spec), zero_centred, config_.head_gates);
  layer.cache = {shape.kv_heads, config_.head_dim, config_.head_dim, shape.window};
  if (source.has(prefix + "mlp.gate.weight")) {
    layer.mlp = load_moe(source, prefix + "mlp.", shape);
  } else {
    GatedMlp mlp = GatedMlp::load(source, prefix + "mlp.", config_.hidden, config_.intermediate);
    mlp.limit = shape.shared_limit;
    layer.mlp = std::move(mlp);
  }
  return layer;
}

void Step35::load_trunk(WeightSource& source, bool zero_centred) {
  constexpr ReadShare kWhole{1, 0}, kLookedUp{0, 0};
  source.set_read_share(config_.tied ? kWhole : kLookedUp);
  embedding_ = source.matrix("embed_tokens", config_.vocab, config_.hidden);
  source.set_read_share(kWhole);
  for (int i = 0; i < config_.layers; ++i) {
    const std::string prefix = fmt::format("layers.{}.", i);
    const bool sparse = source.has(prefix + "mlp.gate.weight");
    if (config_.sparse && sparse != (std::ranges::find(*config_.sparse, i) != config_.sparse->end())) {
      fail(ErrorCode::checkpoint,
          "[load] config.json: moe_layers_enum says that layer {} is {}, the tensors make it {}", i,
          sparse ? "dense" : "a mixture", sparse ? "a mixture" : "dense");
    }
    layers_.push_back(load_layer(source, prefix, config_.trunk[static_cast<std::size_t>(i)], zero_centred));
  }
  final_norm_ = source.gain("norm.weight", config_.hidden, zero_centred);
  output_ = config_.tied ? embedding_ : source.matrix("lm_head", config_.vocab, config_.hidden);
}

void Step35::load_heads(WeightSource& source, int depths) {
  std::vector<Head> heads;
  for (int i = 0; i < depths; ++i) {
    const std::string prefix = fmt::format("layers.{}.", i);
    Head head;
    head.embedding_norm = source.gain(prefix + "enorm.weight", config_.hidden, false);
    head.hidden_norm = source.gain(prefix + "hnorm.weight", config_.hidden, false);
    head.final_norm = source.gain(prefix + "shared_head_norm.weight", config_.hidden, false);
    head.fusion = source.matrix(prefix + "eh_proj", config_.hidden, 2 * config_.hidden);
    head.output = source.matrix(prefix + "shared_head_head", config_.vocab, config_.hidden);
    head.layer = load_layer(source, prefix, config_.heads.at(static_cast<std::size_t>(i)), false);
    heads.push_back(std::move(head));
  }
  heads_ = std::move(heads);
}

std::unique_ptr<CacheSet> Step35::make_caches() const {
  std::vector<std::unique_ptr<Cache>> caches;
  for (const Layer& layer : layers_) caches.push_back(ops_.make_kv_cache(layer.cache));
  return std::make_unique<CacheSet>(std::move(caches));
}

HeadCaches Step35::make_head_caches() const {
  if (heads_.empty()) fail(ErrorCode::internal, "[step3p5] the model was loaded without its head");
  HeadCaches sets;
  for (const Head& head : heads_) {
    std::vector<std::unique_ptr<Cache>> caches;
    caches.push_back(ops_.make_kv_cache(head.layer.cache));
    sets.push_back(std::make_unique<CacheSet>(std::move(caches)));
  }
  return sets;
}

Tensor Step35::run_layer(
    const Layer& layer, const Tensor& x, std::span<const int> query_rows, std::span<const CacheSlice> slices) const {
  const Tensor n = ops_.rms_norm(x, layer.input_norm, config_.norm_eps);
  ops_.observe("input_norm", n);
  const bool is_whole = static_cast<int>(query_rows.size()) == x.rows;
  const Tensor y = layer.attention.forward(ops_, n, is_whole ? x : ops_.select(x, query_rows), query_rows, slices);
  if (query_rows.empty()) return {};
  const Tensor m = ops_.rms_norm(y, layer.post_norm, config_.norm_eps);
  ops_.observe("post_norm", m);
  return std::visit([&](const auto& mlp) { return mlp.forward(ops_, m, y); }, layer.mlp);
}

Forward Step35::forward(const Pass& pass) const {
  const std::vector<int> rows = row_range(0, static_cast<int>(pass.tokens.size()));
  Tensor x = ops_.embed(embedding_, pass.tokens);  // [R, D]
  ops_.observe("embed", x);
  for (int i = 0; i < config_.layers; ++i) {
    const TapScope scope(ops_.tap(), "layers.{}.", i);
    x = run_layer(layers_[static_cast<std::size_t>(i)], x, rows, layer_slices(pass.slices, i));
  }
  Forward result;
  result.pre_norm = x;
  result.post_norm = ops_.rms_norm(x, final_norm_, config_.norm_eps);
  ops_.observe("final_norm", result.post_norm);
  result.logits = ops_.linear(ops_.select(result.post_norm, pass.logit_rows), output_);  // [n, V]
  return result;
}

HeadForward Step35::draft(const HeadPass& pass) const {
  if (heads_.empty()) fail(ErrorCode::internal, "[step3p5] the model was loaded without its head");
  const Head& head = heads_.at(static_cast<std::size_t>(pass.step - 1));
  const TapScope scope(ops_.tap(), "mtp.{}.", pass.step);
  const Tensor embedding = ops_.embed(embedding_, pass.tokens);  // [R, D]
  const Tensor e = ops_.rms_norm(embedding, head.embedding_norm, config_.norm_eps);
  const Tensor h = ops_.rms_norm(pass.hidden, head.hidden_norm, config_.norm_eps);
  ops_.observe("embedding_norm", e);
  ops_.observe("hidden_norm", h);
  const Tensor fused = ops_.linear(ops_.concat(e, h), head.fusion);  // [R, 2D] -> [R, D]
  ops_.observe("fused", fused);
  const Tensor x = run_layer(head.layer, fused, pass.output_rows, layer_slices(pass.slices, 0));  // [n, D]
  if (pass.output_rows.empty()) return {};

  const Tensor m = ops_.rms_norm(x, head.final_norm, config_.norm_eps);
  ops_.observe("final_norm", m);
  Tensor logits;  // [logit_rows, V]
  if (!pass.logit_rows.empty()) {
    const Tensor drafting = ops_.select(m, pass.logit_rows);
    logits = pass.vocabulary != nullptr ? ops_.linear_subset(drafting, head.output, *pass.vocabulary)
                                        : ops_.linear(drafting, head.output);
  }
  const HeadStates states{.pre_norm = x,
      .post_norm = m,
      .fused = ops_.select(fused, pass.output_rows),
      .embedding = ops_.select(embedding, pass.output_rows),
      .previous = ops_.select(pass.hidden, pass.output_rows)};
  return {recycled_state(ops_, contract_.recycled_hidden.value, states), std::move(logits)};
}

/// How many depths the files hold, from the first on. Throws where one is there in part, or one before another lacks.
int count_depths(const std::map<std::string, TensorView>& head, int declared, Report& report) {
  int depths = 0;
  for (int i = 0; i < declared; ++i) {
    const std::string prefix = fmt::format("layers.{}.", i);
    const auto at = head.lower_bound(prefix);
    if (at == head.end() || !at->first.starts_with(prefix)) break;
    ++depths;
  }
  if (depths > 0 && depths < declared) {
    report.warn(
        fmt::format("config.json declares {} MTP layers, the files hold {}; drafts go that deep", declared, depths));
  }
  return depths;
}

Contract resolve_contract(const StatedContract& stated) {
  const std::string family = "family default";
  Contract contract;
  contract.base_hidden = stated.base_hidden.value_or(Decided<HiddenState>{HiddenState::pre_norm, family});
  contract.recycled_hidden = stated.recycled_hidden.value_or(Decided<RecycledHidden>{HeadState::pre_norm, family});
  contract.concat_order = stated.concat_order.value_or(Decided<ConcatOrder>{ConcatOrder::embedding_hidden, family});
  contract.position_mode = stated.position_mode.value_or(Decided<PositionMode>{PositionMode::cache, family});
  contract.head_packing = stated.head_packing.value_or(Decided<HeadPacking>{HeadPacking{}, family});
  return contract;
}

/// Attaches the head. Throws where it cannot be used; the model is then still a whole trunk.
void attach_head(const FamilyRequest& request, const Step35Config& config, Step35Names& names, Step35& model) {
  if (model.contract_.concat_order.value != ConcatOrder::embedding_hidden) {
    fail(ErrorCode::checkpoint,
        "{}: concat_order: Step heads read the embedding, then the hidden state; no other order",
        model.contract_.concat_order.source);
  }
  const int declared = static_cast<int>(config.heads.size());
  if (declared == 0) {
    fail(ErrorCode::checkpoint, "config.json: expected num_nextn_predict_layers above 0, as the files hold MTP layers");
  }
  const int depths = count_depths(names.head, declared, request.report);
  model.contract_.head_norms = settle_head_norms(request, names.head);
  WeightSource source(
      "head", std::move(names.head), request.checkpoint.config(), request.ops, request.report, request.storage);
  source.set_packing(model.contract_.head_packing.value);
  source.set_read_share({0, 1.0 / std::max(1, depths)});  // a step runs one of them
  model.load_heads(source, std::max(1, depths));
  source.expect_all_taken();
  model.info_.head_layers = model.info_.max_depth = depths;
  model.info_.head_scheme = HeadScheme::chained;
}

}  // namespace

FamilyResult load_step3p5(const FamilyRequest& request) {
  const Checkpoint& checkpoint = request.checkpoint;
  const Step35Config config = Step35Config::read(checkpoint);
  Step35Names names = step3p5_names(checkpoint, request.head, config.layers);
  auto model = std::make_unique<Step35>(request.ops, config);
  model->info_ = {.family = std::string(request.family),
      .model_type = checkpoint.config().string("model_type"),
      .layers = config.layers,
      .hidden = config.hidden,
      .vocab = config.vocab,
      .context = config.context,
      .turn_ends = {"<|im_end|>"}};
  model->contract_ = resolve_contract(request.stated);
  const auto norms = model->contract_.trunk_norms = step3p5_trunk_norms(checkpoint, names, request.report);
  request.report.note(fmt::format("trunk norms are {}: {}", name_of(norms.value), norms.source));
  WeightSource trunk(
      "trunk", std::move(names.trunk), checkpoint.config(), request.ops, request.report, request.storage);
  model->load_trunk(trunk, norms.value == NormEncoding::zero_centred);
  trunk.expect_all_taken();

  FamilyResult result;
  if (request.want_head) result.head_problem = try_head(request, [&] { attach_head(request, config, names, *model); });
  result.model = std::move(model);
  return result;
}

}  // namespace foresay
