#include "checkpoint/quantisation.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace foresay {
namespace {

/// What a mode means where the config leaves a value out; for the fp modes also the only values there are.
struct ModeRow {
  QuantMode mode;
  std::string_view name;
  int bits, group;
};
constexpr std::array kModes{
    ModeRow{QuantMode::affine, "affine", 4, 64},
    ModeRow{QuantMode::mxfp4, "mxfp4", 4, 32},
    ModeRow{QuantMode::mxfp8, "mxfp8", 8, 32},
    ModeRow{QuantMode::nvfp4, "nvfp4", 4, 16},
};

template <std::size_t N>
bool contains(const std::array<std::int64_t, N>& values, std::int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool is_affine(std::int64_t bits, std::int64_t group) {
  return contains(std::array<std::int64_t, 6>{2, 3, 4, 5, 6, 8}, bits) &&
         contains(std::array<std::int64_t, 3>{32, 64, 128}, group);
}

bool is_valid(const QuantGeometry& geometry) {
  if (geometry.mode == QuantMode::affine) return is_affine(geometry.bits, geometry.group);
  const auto& row = kModes[static_cast<std::size_t>(geometry.mode)];
  return geometry.bits == row.bits && geometry.group == row.group;
}

/// A module's path without the wrapper's prefix: config keys and tensor names need not agree on it.
std::string_view without_prefix(std::string_view module) {
  for (const std::string_view prefix :
      {"language_model.model.", "model.language_model.", "language_model.", "model."}) {
    if (module.starts_with(prefix)) return module.substr(prefix.size());
  }
  return module;
}

QuantGeometry read_geometry(const Config& config) {
  QuantGeometry geometry;
  if (const auto name = config.maybe_string("mode")) {
    const auto row = std::find_if(kModes.begin(), kModes.end(), [&](const ModeRow& r) { return r.name == *name; });
    if (row == kModes.end()) {
      fail(ErrorCode::unsupported,
          "[quantisation] {}: mode: expected affine, mxfp4, mxfp8 or nvfp4, found \"{}\"; use a checkpoint in one of "
          "these",
          config.where(), *name);
    }
    geometry.mode = row->mode;
  }
  const auto& defaults = kModes[static_cast<std::size_t>(geometry.mode)];
  geometry.bits = config.maybe_integer("bits", 1, 64).value_or(defaults.bits);
  geometry.group = config.maybe_integer("group_size", 1, 1 << 20).value_or(defaults.group);
  if (!is_valid(geometry)) {
    fail(ErrorCode::checkpoint,
        "[quantisation] {}: expected bits and group_size that {} has, found {} bits, group_size {}; correct the file",
        config.where(), name_of(geometry.mode), geometry.bits, geometry.group);
  }
  return geometry;
}

/// The object that describes MLX packing, if any. `quantization` wins over `quantization_config`, the top over
/// text_config.
std::optional<Config> find_declaration(const Config& top) {
  const auto text = top.maybe_object("text_config");
  for (const std::string key : {"quantization", "quantization_config"}) {
    for (const Config* level : {&top, text ? &*text : nullptr}) {
      if (level == nullptr) continue;
      auto found = level->maybe_object(key);
      if (!found) continue;
      if (const auto method = found->maybe_string("quant_method"); method && *method != "mlx") {
        fail(ErrorCode::unsupported,
            "[quantisation] {}: quant_method: expected MLX packing or unquantised weights, found \"{}\", which is not "
            "supported; use the bf16 release or an MLX conversion",
            found->where(), *method);
      }
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(QuantMode mode) {
  return kModes[static_cast<std::size_t>(mode)].name;
}

QuantGeometry infer_geometry(const std::string& module, const TensorView& weight, const TensorView& scales, int in) {
  const auto refuse = [&](const std::string& expected) {
    fail(ErrorCode::checkpoint,
        "[quantisation] {}: expected {} for {} inputs, found weight {} {}, scales {} {}; the file does not fit its "
        "config.json, download both again",
        module, expected, in, name_of(weight.dtype), describe_shape(weight.shape), name_of(scales.dtype),
        describe_shape(scales.shape));
  };
  const auto rank = weight.shape.size();
  if (rank < 2 || scales.shape.size() != rank ||
      !std::equal(weight.shape.begin(), weight.shape.end() - 1, scales.shape.begin())) {
    refuse("weight and scales with the same rows");
  }
  if (weight.dtype != DType::u32) refuse("a weight packed in U32");
  const auto words = weight.shape.back();
  const auto groups = scales.shape.back();
  if (in <= 0 || words <= 0 || groups <= 0 || words > in || words * 32 % in != 0 || in % groups != 0) {
    refuse("whole bits per weight and whole groups");
  }
  QuantGeometry geometry{
      .mode = QuantMode::affine, .bits = static_cast<int>(words * 32 / in), .group = static_cast<int>(in / groups)};
  if (is_float(scales.dtype)) {
    if (!is_valid(geometry)) refuse("2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128");
    return geometry;
  }
  if (scales.dtype != DType::u8) refuse("floating or U8 scales");
  for (const auto& row : kModes) {
    if (row.mode == QuantMode::affine) continue;
    geometry.mode = row.mode;
    if (is_valid(geometry)) return geometry;
  }
  refuse("mxfp4, mxfp8 or nvfp4 packing");
  return geometry;  // not reached: refuse throws
}

void refuse_vendor_formats(const Config& top) {
  (void)find_declaration(top);
}

std::optional<QuantGeometry> declared_geometry(const Config& top, const std::string& module) {
  const auto declaration = find_declaration(top);
  if (!declaration) return std::nullopt;
  const auto wanted = without_prefix(module);
  for (const auto& [key, value] : declaration->json().items()) {
    if (without_prefix(key) != wanted) continue;
    if (value.is_boolean() && !value.get<bool>()) return std::nullopt;
    if (value.is_object()) return read_geometry(Config(value, declaration->where() + ": " + key));
    if (!value.is_boolean()) {
      fail(ErrorCode::checkpoint, "[quantisation] {}: {}: expected an object, true or false; correct the file",
          declaration->where(), key);
    }
    break;  // true: the global values
  }
  const bool has_global = declaration->has("bits") || declaration->has("group_size") || declaration->has("mode");
  return has_global ? std::optional(read_geometry(*declaration)) : std::nullopt;
}

}  // namespace foresay
