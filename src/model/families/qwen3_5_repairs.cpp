#include "model/families/qwen3_5_repairs.h"

#include <cstring>
#include <memory>
#include <vector>

#include "checkpoint/name_list.h"

namespace foresay {
namespace {

/// A float32 tensor of one value.
TensorView filled(const std::string& name, std::vector<std::int64_t> shape, float value) {
  TensorView view;
  view.name = name;
  view.file = "no file";
  view.shape = std::move(shape);
  auto values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(view.elements()), value);
  view.data = reinterpret_cast<const std::byte*>(values->data());
  view.bytes = values->size() * sizeof(float);
  view.owner = std::move(values);
  return view;
}

void supply_zeros(WeightSource& head, const Qwen35Config& config, Report& report) {
  std::vector<std::string> lost;
  for (const char* name : {"k_proj", "v_proj"}) {
    const std::string module = fmt::format("layers.0.self_attn.{}", name);
    if (head.has(module + ".weight")) continue;
    head.supply(
        module + ".weight", filled(module + ".weight", {config.kv_heads * config.head_dim, config.hidden}, 0.0f));
    lost.push_back(module);
  }
  if (!lost.empty()) {
    report.warn(fmt::format("[load] head: {} missing; zeros stand in, and attention adds nothing", list_names(lost)));
  }
}

void supply_gates(
    WeightSource& head, const std::map<std::string, TensorView>& trunk, const Qwen35Config& config, Report& report) {
  int layer = config.layers - 1;
  while (layer >= 0 &&
         !(config.full_attention[static_cast<std::size_t>(layer)] && config.sparse[static_cast<std::size_t>(layer)])) {
    --layer;
  }
  std::vector<std::string> lost;
  for (const char* name : {"mlp.gate", "mlp.shared_expert_gate"}) {
    const std::string module = fmt::format("layers.0.{}", name);
    if (head.has(module + ".weight") || layer < 0) continue;
    for (const char* part : {".weight", ".scales", ".biases"}) {
      const auto found = trunk.find(fmt::format("layers.{}.{}{}", layer, name, part));
      if (found != trunk.end()) head.supply(module + part, found->second);
    }
    lost.push_back(module);
  }
  if (!lost.empty()) {
    report.warn(
        fmt::format("[load] head: {} missing; those of the trunk's layer {} stand in", list_names(lost), layer));
  }
}

void supply_norms(WeightSource& head, const Qwen35Config& config, bool zero_centred, Report& report) {
  const int hidden = config.hidden, dim = config.head_dim;
  const std::pair<const char*, int> norms[] = {{"pre_fc_norm_embedding.weight", hidden},
      {"pre_fc_norm_hidden.weight", hidden}, {"norm.weight", hidden}, {"layers.0.input_layernorm.weight", hidden},
      {"layers.0.post_attention_layernorm.weight", hidden}, {"layers.0.self_attn.q_norm.weight", dim},
      {"layers.0.self_attn.k_norm.weight", dim}};
  std::vector<std::string> lost;
  for (const auto& [name, size] : norms) {
    if (head.has(name)) continue;
    head.supply(name, filled(name, {size}, zero_centred ? 0.0f : 1.0f));
    lost.emplace_back(name);
  }
  if (!lost.empty()) report.warn(fmt::format("[load] head: {} missing; the identity stands in", list_names(lost)));
}

}  // namespace

void repair_head(WeightSource& head, const std::map<std::string, TensorView>& trunk, const Qwen35Config& config,
    bool zero_centred_norms, Report& report) {
  if (config.moe.experts == 0) return;
  supply_zeros(head, config, report);
  supply_gates(head, trunk, config, report);
  supply_norms(head, config, zero_centred_norms, report);
}

}  // namespace foresay
