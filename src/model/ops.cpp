#include "model/ops.h"

namespace foresay {

std::vector<Tensor> Ops::linears(const Tensor& x, std::span<const Matrix* const> ws) {
  std::vector<Tensor> products;
  for (const Matrix* w : ws) products.push_back(linear(x, *w));
  return products;
}

Tensor Ops::linear_add(const Tensor& x, const Matrix& w, const Tensor& residual) {
  return add(residual, linear(x, w));
}

Tensor Ops::gated_linear(const Tensor& x, const Matrix& gate, const Matrix& up) {
  return swiglu(linear(x, gate), linear(x, up));
}

}  // namespace foresay
