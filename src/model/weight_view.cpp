#include "model/weight_view.h"

#include "base/error.h"

namespace foresay {
namespace {

WeightType weight_type(DType type, const std::string& module) {
  switch (type) {
    case DType::f32:
      return WeightType::f32;
    case DType::f16:
      return WeightType::f16;
    case DType::bf16:
      return WeightType::bf16;
    default:
      fail(ErrorCode::unsupported, "[load] {}: expected f32, f16 or bf16 values, found {}", module, name_of(type));
  }
}

WeightType packed_type(QuantMode mode) {
  switch (mode) {
    case QuantMode::affine:
      return WeightType::affine;
    case QuantMode::mxfp4:
      return WeightType::mxfp4;
    case QuantMode::mxfp8:
      return WeightType::mxfp8;
    case QuantMode::nvfp4:
      return WeightType::nvfp4;
  }
  return WeightType::affine;
}

}  // namespace

WeightView weight_view(const StoredMatrix& stored) {
  WeightView view;
  view.out = stored.out;
  view.in = stored.in;
  view.data = stored.weight.data;
  view.decides = stored.decides;
  if (stored.quant) {
    view.type = packed_type(stored.quant->mode);
    view.bits = stored.quant->bits;
    view.group = stored.quant->group;
    view.scales = stored.scales.data;
    if (view.type == WeightType::affine) {
      view.scale_type = weight_type(stored.scales.dtype, stored.module + ".scales");
      view.biases = stored.biases.data;
    }
  } else {
    view.type = weight_type(stored.weight.dtype, stored.module);
  }
  return view;
}

}  // namespace foresay
