// model/ops_cpu/ops_cpu.h: the CPU lane: eager, multi-threaded, every sum in a fixed order.
#pragma once

#include <functional>

#include "base/thread_pool.h"
#include "kernels/linear.h"
#include "model/cache/paged_kv_cache.h"
#include "model/cache/recurrent_cache.h"
#include "model/ops.h"

namespace foresay {

/// Work is cut over outputs, never over a sum, so the number of threads cannot change a bit.
class CpuOps final : public Ops {
 public:
  explicit CpuOps(int threads);

  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] double tie_tolerance() const override { return 0; }
  [[nodiscard]] Matrix matrix(const StoredMatrix& stored) override;
  [[nodiscard]] Vector vector(std::vector<float> values) override;
  [[nodiscard]] std::unique_ptr<Cache> make_kv_cache(const KvShape& shape) override;
  [[nodiscard]] std::unique_ptr<Cache> make_recurrent_cache(const RecurrentShape& shape) override;

  [[nodiscard]] Tensor embed(const Matrix& table, std::span<const TokenId> ids) override;
  [[nodiscard]] Tensor select(const Tensor& x, std::span<const int> rows) override;
  [[nodiscard]] Tensor stack(std::span<const Tensor> parts) override;
  [[nodiscard]] Tensor concat(const Tensor& left, const Tensor& right) override;
  [[nodiscard]] Tensor add(const Tensor& a, const Tensor& b) override;
  [[nodiscard]] Tensor rms_norm(const Tensor& x, const Vector& gain, float eps) override;
  [[nodiscard]] Tensor linear(const Tensor& x, const Matrix& w) override;
  [[nodiscard]] Tensor swiglu(const Tensor& gate, const Tensor& up) override;
  Tensor attention(const AttentionSpec& spec, const Tensor& q, std::span<const int> query_rows, const Tensor& k,
      const Tensor& v, std::span<const CacheSlice> slices) override;
  [[nodiscard]] Tensor gated_delta(const GatedDeltaSpec& spec, const Tensor& qkv, const Tensor& z, const Tensor& b,
      const Tensor& a, std::span<const CacheSlice> slices) override;

  [[nodiscard]] Tensor from_host(int rows, int width, std::span<const float> values) override;
  [[nodiscard]] std::span<const float> read(const Tensor& x) override;

 private:
  void gated_delta_slice(const GatedDeltaSpec& spec, const float* qkv, const float* z, const float* b, const float* a,
      const CacheSlice& slice, float* out);

  ThreadPool pool_;
};

namespace cpu {

/// What a CPU tensor or vector holds.
struct Floats final : Storage {
  std::vector<float> values;
};

/// What a CPU matrix holds: a view of the mapped file and what keeps it mapped.
struct Weights final : Storage {
  WeightView view;
  StoredMatrix stored;
};

/// A tensor under construction: the handle is made once the rows are written.
class Builder {
 public:
  Builder(int rows, int width);
  [[nodiscard]] float* row(int index) { return floats_->values.data() + static_cast<std::size_t>(index) * width_; }
  [[nodiscard]] Tensor done() && { return {rows_, static_cast<int>(width_), std::move(floats_)}; }

 private:
  int rows_;
  std::size_t width_;
  std::shared_ptr<Floats> floats_;
};

[[nodiscard]] const float* data(const Tensor& x);
[[nodiscard]] const float* data(const Vector& v);
[[nodiscard]] inline const float* row(const Tensor& x, int index) {
  return data(x) + static_cast<std::size_t>(index) * static_cast<std::size_t>(x.width);
}

/// Bugs, not user errors: throws ErrorCode::internal naming the operation.
void check(bool ok, const char* operation, const char* what);

}  // namespace cpu
}  // namespace foresay
