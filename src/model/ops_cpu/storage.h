// model/ops_cpu/storage.h: what handles hold on the CPU lane.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "kernels/linear_int8.h"
#include "model/ops.h"
#include "model/ops_cpu/buffer_pool.h"

namespace foresay::cpu {

/// Rows rounded to int8, with the memory that they lie in.
struct QuantisedRows {
  Buffer memory;
  Int8Rows rows;
};

/// A tensor's floats, and their int8 form once an operation has asked for it: several matrices read the same rows.
struct Floats final : Storage {
  Floats(const std::shared_ptr<BufferPool>& pool, std::size_t count) : memory(pool, count * sizeof(float)) {}
  [[nodiscard]] float* values() const { return reinterpret_cast<float*>(memory.data()); }

  Buffer memory;
  mutable std::array<std::optional<QuantisedRows>, 2> quantised;  ///< by Int8Order; engine thread only
};

/// A parameter vector.
struct Parameters final : Storage {
  std::vector<float> values;
};

/// A matrix: a view of the mapped file and what keeps it mapped.
struct Weights final : Storage {
  WeightView view;
  StoredMatrix stored;
};

/// Throws ErrorCode::unsupported for values that are not f32, f16 or bf16.
[[nodiscard]] std::shared_ptr<const Weights> weights_of(const StoredMatrix& stored);

/// The matrices of a layer's experts.
struct ExpertWeights final : Storage {
  std::vector<std::shared_ptr<const Weights>> each;
};

/// A tensor under construction: the handle is made once the rows are written. Its memory is not initialised.
class Builder {
 public:
  Builder(const std::shared_ptr<BufferPool>& pool, int rows, int width)
      : rows_(rows),
        width_(static_cast<std::size_t>(width)),
        floats_(std::make_shared<Floats>(pool, static_cast<std::size_t>(rows) * static_cast<std::size_t>(width))) {}
  [[nodiscard]] float* row(int index) const { return floats_->values() + static_cast<std::size_t>(index) * width_; }
  [[nodiscard]] int rows() const { return rows_; }
  [[nodiscard]] int width() const { return static_cast<int>(width_); }
  [[nodiscard]] Tensor done() && { return {rows_, static_cast<int>(width_), std::move(floats_)}; }

 private:
  int rows_;
  std::size_t width_;
  std::shared_ptr<Floats> floats_;
};

[[nodiscard]] inline const Floats& floats(const Tensor& x) {
  return static_cast<const Floats&>(*x.storage);
}
[[nodiscard]] inline const float* data(const Tensor& x) {
  return floats(x).values();
}
[[nodiscard]] inline const float* row(const Tensor& x, int index) {
  return data(x) + static_cast<std::size_t>(index) * static_cast<std::size_t>(x.width);
}
[[nodiscard]] inline const float* data(const Vector& v) {
  return static_cast<const Parameters&>(*v.storage).values.data();
}
[[nodiscard]] inline const WeightView& view(const Matrix& w) {
  return static_cast<const Weights&>(*w.storage).view;
}
[[nodiscard]] inline const WeightView& view(const Experts& w, int expert) {
  return static_cast<const ExpertWeights&>(*w.storage).each[static_cast<std::size_t>(expert)]->view;
}

/// Bugs, not user errors: throws ErrorCode::internal naming the operation.
void check(bool ok, const char* operation, const char* what);

}  // namespace foresay::cpu
