// model/ops_cpu/ops_cpu.h: the CPU lane: eager, multi-threaded, every sum in a fixed order.
#pragma once

#include <functional>

#include "base/thread_pool.h"
#include "model/cache/paged_kv_cache.h"
#include "model/cache/recurrent_cache.h"
#include "model/ops.h"
#include "model/ops_cpu/storage.h"

namespace foresay {

/// Work is cut over outputs, never over a sum, so the number of threads cannot change a bit.
class CpuOps final : public Ops {
 public:
  CpuOps(int threads, CpuActivations activations);

  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] double tie_tolerance() const override { return 0; }
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
  [[nodiscard]] Tensor linear_subset(const Tensor& x, const Matrix& w, const VocabularySubset& rows) override;
  [[nodiscard]] bool gains_from_subset() const override { return true; }
  [[nodiscard]] Tensor swiglu(const Tensor& gate, const Tensor& up, float limit) override;
  [[nodiscard]] Tensor pick_runs(const Tensor& x, std::span<const int> from, int width) override;
  [[nodiscard]] Tensor gate_runs(const Tensor& x, const Tensor& gate) override;
  [[nodiscard]] std::vector<Tensor> linears(const Tensor& x, std::span<const Matrix* const> ws) override;
  [[nodiscard]] Tensor linear_add(const Tensor& x, const Matrix& w, const Tensor& residual) override;
  [[nodiscard]] Tensor gated_linear(const Tensor& x, const Matrix& gate, const Matrix& up, float limit) override;
  [[nodiscard]] Tensor routed_mlp(const RouterSpec& spec, const ExpertMlps& experts, const Tensor& x,
      const Tensor& logits, const Tensor& residual) override;
  Tensor attention(const AttentionSpec& spec, const Tensor& q, std::span<const int> query_rows, const Tensor& k,
      const Tensor& v, std::span<const CacheSlice> slices) override;
  [[nodiscard]] Tensor gated_delta(const GatedDeltaSpec& spec, const Tensor& qkv, const Tensor& z, const Tensor& b,
      const Tensor& a, std::span<const CacheSlice> slices) override;

  [[nodiscard]] Tensor from_host(int rows, int width, std::span<const float> values) override;
  [[nodiscard]] std::span<const float> read(const Tensor& x) override;

 private:
  /// One matrix of a product and where it goes.
  struct Product {
    const WeightView* w;
    float* out;  ///< [rows, outputs]  stride w->out
    int outputs = w->out;
    const int* which = nullptr;  ///< weight row of each output; null: they are numbered alike
    int first_row = 0;           ///< of x
    int rows = -1;               ///< of x, from there on; -1: all
  };
  /// What is done to outputs [first, last) of every row once they are there.
  using Finish = std::function<void(int first, int last)>;

  [[nodiscard]] cpu::Builder make(int rows, int width) const { return {buffers_, rows, width}; }
  void for_rows(int rows, const std::function<void(int row)>& body);
  [[nodiscard]] const Int8Rows& quantised(const Tensor& x, Int8Order order);
  void multiply(const Tensor& x, std::span<const Product> products);
  void multiply_together(const Tensor& x, std::span<const Product> products, const Finish& finish);
  void multiply_range(const Tensor& x, const Product& product, int first, int last) const;
  [[nodiscard]] bool reads_int8(const WeightView& w) const {
    return activations_ == CpuActivations::int8 && takes_int8(w) && !w.decides;
  }
  void prepare(const Tensor& x, const WeightView& w);
  [[nodiscard]] const float* angles(const Rope& rope, std::span<const int> positions);
  void gated_delta_slice(const GatedDeltaSpec& spec, const Tensor& qkv, const Tensor& z, const Tensor& b,
      const Tensor& a, const CacheSlice& slice, cpu::Builder& out);

  CpuActivations activations_;
  ThreadPool pool_;
  std::shared_ptr<cpu::BufferPool> buffers_ = std::make_shared<cpu::BufferPool>();

  /// Rotations of the last pass, of each rope: all layers of a model turn in one way or two.
  static constexpr std::size_t kMostRopes = 4;
  struct Angles {
    Rope rope;
    std::vector<int> positions = {};
    std::vector<float> values = {};  ///< [positions, 2 * pairs] cosines, then sines
  };
  std::vector<Angles> angles_;
};

}  // namespace foresay
