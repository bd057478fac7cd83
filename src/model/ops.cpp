#include "model/ops.h"

#include <algorithm>
#include <cstddef>

#include "model/vocabulary_subset.h"

namespace foresay {

std::vector<Tensor> Ops::linears(const Tensor& x, std::span<const Matrix* const> ws) {
  std::vector<Tensor> products;
  for (const Matrix* w : ws) products.push_back(linear(x, *w));
  return products;
}

Tensor Ops::linear_add(const Tensor& x, const Matrix& w, const Tensor& residual) {
  return add(residual, linear(x, w));
}

Tensor Ops::gated_linear(const Tensor& x, const Matrix& gate, const Matrix& up, float limit) {
  return swiglu(linear(x, gate), linear(x, up), limit);
}

Tensor Ops::linear_subset(const Tensor& x, const Matrix& w, const VocabularySubset& rows) {
  const Tensor whole = linear(x, w);
  const std::span<const float> values = read(whole);
  std::vector<float> picked;
  picked.reserve(static_cast<std::size_t>(whole.rows) * static_cast<std::size_t>(rows.size()));
  for (int row = 0; row < whole.rows; ++row) {
    const float* from = values.data() + static_cast<std::size_t>(row) * static_cast<std::size_t>(whole.width);
    picked.insert(picked.end(), from, from + rows.low);
    for (const TokenId id : rows.extra) picked.push_back(from[id]);
  }
  return from_host(whole.rows, rows.size(), picked);
}

}  // namespace foresay
