#include "model/families/qwen3_5_norms.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/error.h"

namespace foresay {
namespace {

double mean(const TensorView& view) {
  const std::vector<float> values = view.to_float();
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(std::max<std::size_t>(1, values.size()));
}

/// Means of the head's norms that tell the encodings apart: q/k norms 0.73-0.75 raw and 1.73 up shifted, input norms
/// -0.44 to 0.39 raw and 0.87 up shifted. The final norm is 2.6 raw and 2.25 shifted in released models, so it does not
/// vote.
class HeadMeans {
 public:
  explicit HeadMeans(const WeightSource& head) {
    for (const char* name : {"layers.0.self_attn.q_norm.weight", "layers.0.self_attn.k_norm.weight"}) {
      if (const auto* view = head.peek(name)) highest_qk_ = std::max(highest_qk_.value_or(-1e9), mean(*view));
    }
    for (const char* name : {"layers.0.input_layernorm.weight", "layers.0.post_attention_layernorm.weight",
             "pre_fc_norm_hidden.weight", "pre_fc_norm_embedding.weight"}) {
      if (const auto* view = head.peek(name)) lowest_input_ = std::min(lowest_input_.value_or(1e9), mean(*view));
    }
  }

  [[nodiscard]] bool look_zero_centred() const {
    return highest_qk_ && lowest_input_ && *highest_qk_ < kQk && *lowest_input_ < kInput;
  }
  [[nodiscard]] bool look_absolute() const {
    return highest_qk_ && lowest_input_ && *highest_qk_ >= kQk && *lowest_input_ >= kInput;
  }
  [[nodiscard]] std::string describe() const {
    return fmt::format(
        "means: highest of q/k norms {:.2f} (zero-centred below {}), lowest of the input norms {:.2f} "
        "(below {})",
        highest_qk_.value_or(0), kQk, lowest_input_.value_or(0), kInput);
  }

 private:
  static constexpr double kQk = 1.25, kInput = 0.5;
  std::optional<double> highest_qk_, lowest_input_;
};

}  // namespace

Decided<NormEncoding> decide_trunk_norms(const Checkpoint& checkpoint, Report& report) {
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
    if (*conv_raw == looks_mlx || (!*conv_raw && raw_prefix)) {
      report.warn(
          fmt::format("the convolution says {0} layout, but names, scales or metadata say {1}; going by the "
                      "convolution",
              *conv_raw ? "Hugging Face" : "MLX", *conv_raw ? "MLX" : "Hugging Face"));
    }
    return {*conv_raw ? NormEncoding::zero_centred : NormEncoding::absolute, conv_name};
  }
  return {looks_mlx ? NormEncoding::absolute : NormEncoding::zero_centred,
      looks_mlx ? "MLX names, scales or metadata" : "Hugging Face names"};
}

Decided<NormEncoding> decide_head_norms(const Checkpoint& checkpoint,
    const std::optional<Decided<NormEncoding>>& declared, const WeightSource& head, const ContractOverrides& overrides,
    const StatedContract& stated, NormEncoding trunk) {
  const HeadMeans means(head);
  // A file that was mended under a statement that was not would be shifted twice.
  const auto agreed = [&](const Decided<NormEncoding>& said) {
    const bool says_raw = said.value == NormEncoding::zero_centred;
    if (says_raw ? means.look_absolute() : means.look_zero_centred()) {
      fail(ErrorCode::checkpoint, "{} says the norms are {}, but the values look {} ({}); correct the config",
          said.source, name_of(said.value), name_of(says_raw ? NormEncoding::absolute : NormEncoding::zero_centred),
          means.describe());
    }
    return said;
  };
  if (overrides.head_norms) return {*overrides.head_norms, "asked for"};
  if (stated.head_norms) return agreed(*stated.head_norms);
  const nlohmann::json& manifest = checkpoint.head().manifest.json();
  if (manifest.value("artifact_schema_version", nlohmann::json()) == 1 &&
      manifest.value("rmsnorm_weight_format", nlohmann::json()) == "mlx_gamma") {
    return {NormEncoding::absolute, "manifest.json: rmsnorm_weight_format is mlx_gamma"};
  }
  if (declared) return agreed(*declared);
  if (checkpoint.head().in_trunk_shards && trunk == NormEncoding::zero_centred) {
    return {NormEncoding::zero_centred, "stored in the shards of a Hugging Face trunk"};
  }
  return {means.look_zero_centred() ? NormEncoding::zero_centred : NormEncoding::absolute, means.describe()};
}

void check_head_gains(const Checkpoint& checkpoint, NormEncoding encoding) {
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

}  // namespace foresay
