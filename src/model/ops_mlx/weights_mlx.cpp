#include "model/ops_mlx/weights_mlx.h"

#include "base/error.h"

namespace foresay::on_mlx {
namespace {

mx::Dtype float_type(const TensorView& view, const std::string& module) {
  switch (view.dtype) {
    case DType::f32:
      return mx::float32;
    case DType::f16:
      return mx::float16;
    case DType::bf16:
      return mx::bfloat16;
    default:
      fail(
          ErrorCode::unsupported, "[load] {}: expected f32, f16 or bf16 values, found {}", module, name_of(view.dtype));
  }
}

/// The bytes of a matrix of `out` rows as elements of `type`. Files do not align tensors, so they are copied as bytes.
mx::array copy(const TensorView& view, int out, mx::Dtype type) {
  const int row_bytes = static_cast<int>(view.bytes / static_cast<std::size_t>(out));
  return mx::view(mx::array(reinterpret_cast<const std::uint8_t*>(view.data), {out, row_bytes}, mx::uint8), type);
}

}  // namespace

Weights::Weights(const StoredMatrix& stored, bool widen) : stored_(stored), widen_(widen) {
  if (!stored.quant) {
    compute_ = float_type(stored.weight, stored.module);
  } else {
    mode_ = name_of(stored.quant->mode);
    const bool affine = stored.quant->mode == QuantMode::affine;
    compute_ = affine ? float_type(stored.scales, stored.module + ".scales") : mx::bfloat16;
  }
  if (widen_) compute_ = mx::float32;
}

void Weights::load() const {
  if (weight_) return;
  const auto floats = [&](const TensorView& view) {
    return mx::astype(copy(view, stored_.out, float_type(view, stored_.module)), compute_);
  };
  std::vector<mx::array> loaded;
  if (mode_.empty()) {
    loaded.push_back(floats(stored_.weight));
  } else {
    loaded.push_back(copy(stored_.weight, stored_.out, mx::uint32));
    if (stored_.quant->mode == QuantMode::affine) {
      loaded.push_back(floats(stored_.scales));
      loaded.push_back(floats(stored_.biases));
    } else {
      loaded.push_back(copy(stored_.scales, stored_.out, mx::uint8));
    }
  }
  mx::eval(loaded);  // frees the copies that were widened
  weight_ = loaded[0];
  if (loaded.size() > 1) scales_ = loaded[1];
  if (loaded.size() > 2) biases_ = loaded[2];
  stored_.weight.owner = stored_.scales.owner = stored_.biases.owner = nullptr;
}

mx::array Weights::product(const mx::array& x) const {
  load();
  const mx::array input = mx::astype(x, compute_);
  const mx::array y = mode_.empty() ? mx::matmul(input, mx::transpose(*weight_))
                                    : mx::quantized_matmul(input, *weight_, *scales_, biases_, /*transpose=*/true,
                                          stored_.quant->group, stored_.quant->bits, mode_);
  return mx::astype(y, mx::float32);
}

mx::array Weights::rows(const mx::array& ids) const {
  load();
  const mx::array taken = mx::take(*weight_, ids, 0);
  if (mode_.empty()) return mx::astype(taken, mx::float32);
  std::optional<mx::array> biases;
  if (biases_) biases = mx::take(*biases_, ids, 0);
  return mx::astype(
      mx::dequantize(taken, mx::take(*scales_, ids, 0), biases, stored_.quant->group, stored_.quant->bits, mode_),
      mx::float32);
}

}  // namespace foresay::on_mlx
