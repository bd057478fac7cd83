#include "model/families/step3p5_names.h"

#include <charconv>
#include <utility>

#include "base/error.h"
#include "model/families/step3p5_config.h"
#include "model/registry.h"

namespace foresay {
namespace {

std::string without_prefix(const std::string& name) {
  for (const std::string_view prefix :
      {"language_model.model.", "model.language_model.", "model.model.", "model.", "language_model."}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

bool replace(std::string& name, std::string_view from, std::string_view to) {
  const auto at = name.find(from);
  if (at == std::string::npos) return false;
  name.replace(at, from.size(), to);
  return true;
}

/// The layer's number and the rest of a name "layers.<n>.<rest>"; -1 for other names.
std::pair<int, std::string> split(const std::string& name) {
  constexpr std::string_view kLayers = "layers.";
  int layer = -1;
  if (!name.starts_with(kLayers)) return {-1, name};
  const auto [end, error] = std::from_chars(name.data() + kLayers.size(), name.data() + name.size(), layer);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return {-1, name};
  return {layer, std::string(end + 1, name.data() + name.size())};
}

/// One set of names for what the vendor, MLX conversion and Transformers write.
std::string unified(std::string name, Step35Names& names) {
  constexpr std::pair<std::string_view, std::string_view> kConverted[] = {{".mlp.gate.gate.", ".mlp.gate."},
      {".mlp.gate.router_bias", ".mlp.router_bias"}, {".mlp.share_expert.", ".mlp.shared_expert."}};
  for (const auto& [from, to] : kConverted) names.has_converted_names |= replace(name, from, to);
  names.has_converted_names |= name.find(".mlp.switch_mlp.") != std::string::npos;

  constexpr std::pair<std::string_view, std::string_view> kOriginal[] = {
      {".moe.gate_proj.", ".mlp.switch_mlp.gate_proj."}, {".moe.up_proj.", ".mlp.switch_mlp.up_proj."},
      {".moe.down_proj.", ".mlp.switch_mlp.down_proj."}, {".moe.gate.", ".mlp.gate."},
      {".moe.router_bias", ".mlp.router_bias"}, {".moe.experts.", ".mlp.experts."}, {".moe.", ".mlp.experts."},
      {".share_expert.", ".mlp.shared_expert."}, {".mlp.shared_experts.", ".mlp.shared_expert."},
      {".mlp.gate.e_score_correction_bias", ".mlp.router_bias"}};
  for (const auto& [from, to] : kOriginal) names.has_original_names |= replace(name, from, to);
  names.has_original_names |= name.find(".mlp.experts.") != std::string::npos;
  return name;
}

bool is_buffer(const std::string& name) {
  return name.ends_with("rotary_emb.inv_freq");
}

/// The name of a head's part inside its depth; empty for copies of the trunk's embeddings.
std::string head_part(std::string rest) {
  if (rest.starts_with("transformer.")) rest.erase(0, 12);
  if (rest.starts_with("mtp_block.")) rest.erase(0, 10);
  if (rest.starts_with("embed_tokens.")) return {};
  for (const auto& [from, to] :
      {std::pair<std::string_view, std::string_view>{"shared_head.norm.", "shared_head_norm."},
          {"shared_head.output.", "shared_head_head."}, {"shared_head.head.", "shared_head_head."}}) {
    if (rest.starts_with(from)) return std::string(to) + rest.substr(from.size());
  }
  return rest;
}

template <typename Map>
void add(Map& map, const std::string& name, const TensorView& view) {
  const auto [at, is_new] = map.emplace(name, view);
  if (!is_new) {
    fail(ErrorCode::checkpoint, "[load] {} and {} are the same parameter under two names", at->second.name, view.name);
  }
}

void add_head(Step35Names& names, const std::string& relative, const TensorView& view, int layers) {
  const auto [layer, rest] = split(relative);
  if (layer < 0) {
    if (relative.find("embed_tokens.") == std::string::npos) add(names.head, relative, view);
    return;
  }
  const std::string part = head_part(rest);
  if (part.empty() || is_buffer(part)) return;
  add(names.head, fmt::format("layers.{}.{}", layer >= layers ? layer - layers : layer, part), view);
}

}  // namespace

Step35Names step3p5_names(const Checkpoint& checkpoint, const HeadTensors& head, int layers) {
  Step35Names names;
  for (const auto& [full, view] : checkpoint.trunk()) {
    const std::string name = without_prefix(full);
    if (is_buffer(name) || split(name).first >= layers) continue;  // the head's, or of nobody
    add(names.trunk, unified(name, names), view);
  }
  for (const auto& [relative, view] : head.tensors) add_head(names, without_prefix(relative), view, layers);
  return names;
}

HeadTensors step3p5_head_in_trunk(const Checkpoint& checkpoint) {
  HeadTensors head;
  const int layers = checkpoint.text_config().maybe_integer("num_hidden_layers", 1, 10000).value_or(0);
  const int depths = step3p5_head_layers(checkpoint);
  for (const auto& [name, view] : checkpoint.trunk()) {
    const int layer = split(without_prefix(name)).first;
    if (layers == 0 || layer < layers || layer >= layers + depths) continue;
    head.tensors.emplace(without_prefix(name), view);
    if (head.found_in.empty()) head.found_in = std::filesystem::path(view.file).filename().string();
    head.in_trunk_shards = true;
  }
  return head;
}

}  // namespace foresay
