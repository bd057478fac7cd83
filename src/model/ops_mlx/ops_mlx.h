// model/ops_mlx/ops_mlx.h: the MLX lane: lazy arrays of mlx::core, evaluated once per pass, on MLX's CPU, Metal or
// CUDA.
#pragma once

#include <mlx/mlx.h>

#include <optional>
#include <string>
#include <vector>

#include "model/ops.h"

namespace foresay {

namespace mx = mlx::core;

/// Operations build a graph and return at once. read() evaluates: what is asked for, together with everything that the
/// caches took in since the last evaluation, so that no graph reaches over two passes. A pass that nobody reads (a
/// prompt chunk, head history) is evaluated when the next one begins.
///
/// MLX keeps one default device per process and one default stream per thread: one lane of this kind at a time, used by
/// the thread that made it. A row's bits may depend on how many rows share a product (docs/numerics.md).
class MlxOps final : public Ops {
 public:
  /// Makes `device` the process's default device; it must be available.
  explicit MlxOps(mx::Device device);

  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] double tie_tolerance() const override { return 1e-3; }
  [[nodiscard]] Matrix matrix(const StoredMatrix& stored) override;
  [[nodiscard]] Vector vector(std::vector<float> values) override;
  [[nodiscard]] Experts experts(std::span<const StoredMatrix> each) override;
  [[nodiscard]] std::unique_ptr<Cache> make_kv_cache(const KvShape& shape) override;
  [[nodiscard]] std::unique_ptr<Cache> make_recurrent_cache(const RecurrentShape& shape) override;

  [[nodiscard]] Tensor embed(const Matrix& table, std::span<const TokenId> ids) override;
  [[nodiscard]] Tensor select(const Tensor& x, std::span<const int> rows) override;
  [[nodiscard]] Tensor stack(std::span<const Tensor> parts) override;
  [[nodiscard]] Tensor concat(const Tensor& left, const Tensor& right) override;
  [[nodiscard]] Tensor add(const Tensor& a, const Tensor& b) override;
  [[nodiscard]] Tensor mix(const Tensor& a, const Tensor& b, float share) override;
  [[nodiscard]] Tensor rms_norm(const Tensor& x, const Vector& gain, float eps) override;
  [[nodiscard]] Tensor linear(const Tensor& x, const Matrix& w) override;
  [[nodiscard]] Tensor swiglu(const Tensor& gate, const Tensor& up, float limit) override;
  [[nodiscard]] Tensor pick_runs(const Tensor& x, std::span<const int> from, int width) override;
  [[nodiscard]] Tensor gate_runs(const Tensor& x, const Tensor& gate) override;
  [[nodiscard]] Tensor routed_mlp(const RouterSpec& spec, const ExpertMlps& experts, const Tensor& x,
      const Tensor& logits, const Tensor& residual) override;
  Tensor attention(const AttentionSpec& spec, const Tensor& q, std::span<const int> query_rows, const Tensor& k,
      const Tensor& v, std::span<const CacheSlice> slices) override;
  [[nodiscard]] Tensor gated_delta(const GatedDeltaSpec& spec, const Tensor& qkv, const Tensor& z, const Tensor& b,
      const Tensor& a, std::span<const CacheSlice> slices) override;

  [[nodiscard]] Tensor from_host(int rows, int width, std::span<const float> values) override;
  [[nodiscard]] std::span<const float> read(const Tensor& x) override;

 private:
  /// One slice of gated_delta: the outputs [count, nv, Dv] of the recurrence, before the gated norm.
  mx::array recurrence(const GatedDeltaSpec& spec, const mx::array& qkv, const mx::array& b, const mx::array& a,
      const CacheSlice& slice);
  void evaluate_pending();

  mx::Device device_;
  std::vector<mx::array> pending_;  ///< what caches hold and nobody has evaluated
};

namespace on_mlx {

/// What a tensor or vector of this lane holds: float32 [rows, width] or [size].
struct Array final : Storage {
  explicit Array(mx::array the_value) : value(std::move(the_value)) {}
  mx::array value;
  mutable std::optional<mx::array> host;  ///< evaluated and row-major, once somebody has read it
};

[[nodiscard]] const mx::array& array(const Tensor& x);
[[nodiscard]] const mx::array& array(const Vector& v);
[[nodiscard]] Tensor tensor(mx::array value);  ///< [rows, width]
/// Rows [first, first + count) along the first axis.
[[nodiscard]] mx::array rows(const mx::array& x, int first, int count);
/// As Ops::swiglu, of any shape.
[[nodiscard]] mx::array swiglu(const mx::array& gate, const mx::array& up, float limit);
/// The slices in order of their rows, as results are put together again.
[[nodiscard]] std::vector<CacheSlice> in_row_order(std::span<const CacheSlice> slices);

/// Bugs, not user errors: throws ErrorCode::internal naming the operation.
void check(bool ok, const char* operation, const char* what);

}  // namespace on_mlx
}  // namespace foresay
