// checkpoint/quantisation.h: how one matrix is stored, decided from its own shapes.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/config.h"
#include "checkpoint/tensor_view.h"

namespace foresay {

/// Packing of a quantised matrix. All are recognised; which of them run is the lane's affair.
enum class QuantMode { affine, mxfp4, mxfp8, nvfp4 };
[[nodiscard]] std::string_view name_of(QuantMode mode);

struct QuantGeometry {
  QuantMode mode = QuantMode::affine;
  int bits = 4;
  int group = 64;  ///< input elements per scale
  friend bool operator==(const QuantGeometry&, const QuantGeometry&) = default;
};

/// A matrix [out, in] as the checkpoint stores it: raw, or packed with scales (and biases, the affine offsets).
struct StoredMatrix {
  std::string module;  ///< path without ".weight", for messages
  int out = 0, in = 0;
  std::optional<QuantGeometry> quant;  ///< empty: raw f32, f16 or bf16
  TensorView weight, scales, biases;   ///< the last two only when quantised
  bool decides = false;  ///< products are compared with each other (a router): activations are not rounded for it
};

/// Geometry from shapes: bits = words per row * 32 / in, group = in / scales per row; floating scales mean affine,
/// uint8 scales one of the fp modes (docs/checkpoints.md). Throws ErrorCode::checkpoint when the shapes fit no format.
[[nodiscard]] QuantGeometry infer_geometry(
    const std::string& module, const TensorView& weight, const TensorView& scales, int in);

/// Throws ErrorCode::unsupported by name when config.json declares a vendor's format (quant_method fp8, awq, gptq, ...)
/// and no MLX quantisation beside it.
void refuse_vendor_formats(const Config& top);

/// What config.json declares for a module: the per-module entry, else the global values; empty for `false` or none.
/// `quantization` wins over `quantization_config`. Vendor formats (quant_method fp8, awq, gptq, ...) throw
/// ErrorCode::unsupported by name.
[[nodiscard]] std::optional<QuantGeometry> declared_geometry(const Config& top, const std::string& module);

}  // namespace foresay
