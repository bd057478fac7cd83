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

/// The type that products run in.
mx::Dtype compute_type(const StoredMatrix& stored, bool widen) {
  if (stored.quant && stored.quant->mode != QuantMode::affine) return widen ? mx::float32 : mx::bfloat16;
  const mx::Dtype type =
      stored.quant ? float_type(stored.scales, stored.module + ".scales") : float_type(stored.weight, stored.module);
  return widen ? mx::float32 : type;
}

/// Values, or words with scales and, for affine packing, offsets.
std::vector<mx::array> arrays_of(const StoredMatrix& stored, mx::Dtype compute) {
  const auto floats = [&](const TensorView& view) {
    return mx::astype(copy(view, stored.out, float_type(view, stored.module)), compute);
  };
  if (!stored.quant) return {floats(stored.weight)};
  const mx::array words = copy(stored.weight, stored.out, mx::uint32);
  if (stored.quant->mode != QuantMode::affine) return {words, copy(stored.scales, stored.out, mx::uint8)};
  return {words, floats(stored.scales), floats(stored.biases)};
}

}  // namespace

Weights::Weights(const StoredMatrix& stored, bool widen)
    : stored_(stored), compute_(compute_type(stored, widen)), mode_(stored.quant ? name_of(stored.quant->mode) : "") {}

void Weights::load() const {
  if (weight_) return;
  const std::vector<mx::array> loaded = arrays_of(stored_, compute_);
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

ExpertWeights::ExpertWeights(std::vector<StoredMatrix> each, bool widen)
    : each_(std::move(each)), quant_(each_.front().quant), compute_(compute_type(each_.front(), widen)) {}

void ExpertWeights::load() const {
  if (weight_) return;
  std::vector<std::vector<mx::array>> parts;  // [values or words, scales, offsets][expert]
  for (const StoredMatrix& stored : each_) {
    const std::vector<mx::array> one = arrays_of(stored, compute_);
    parts.resize(one.size());
    for (std::size_t i = 0; i < one.size(); ++i) parts[i].push_back(one[i]);
  }
  std::vector<mx::array> loaded;
  for (const std::vector<mx::array>& all : parts) loaded.push_back(mx::stack(all, 0));
  mx::eval(loaded);
  weight_ = loaded[0];
  if (loaded.size() > 1) scales_ = loaded[1];
  if (loaded.size() > 2) biases_ = loaded[2];
  each_.clear();
}

mx::array ExpertWeights::product(const mx::array& x, const mx::array& ids) const {
  load();
  const mx::array input = mx::astype(x, compute_);
  const mx::array y = !quant_
                          ? mx::gather_mm(input, mx::swapaxes(*weight_, 1, 2), std::nullopt, ids)
                          : mx::gather_qmm(input, *weight_, *scales_, biases_, std::nullopt, ids, /*transpose=*/true,
                                quant_->group, quant_->bits, std::string(name_of(quant_->mode)));
  return mx::astype(y, mx::float32);
}

}  // namespace foresay::on_mlx
