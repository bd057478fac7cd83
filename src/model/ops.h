// model/ops.h: the coarse operations that model families are written against, one implementation per lane.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/quantisation.h"
#include "foresay/token.h"
#include "model/cache/cache.h"
#include "model/cache/shapes.h"
#include "model/profile.h"
#include "model/tap.h"
#include "model/tensor.h"

namespace foresay {

struct VocabularySubset;

/// Consecutive rows of a pass that belong to one sequence, and that sequence's cache in the layer at hand. Row i of the
/// slice has position cache->length() + i, taken before the operation appends.
struct CacheSlice {
  int first = 0, count = 0;
  Cache* cache = nullptr;
  bool provisional = false;  ///< drafted rows: the cache waits for keep()
};

/// Rotary embedding: pair j of the first 2 * inv_freq.size() dimensions turns by position * inv_freq[j].
struct Rope {
  std::vector<double> inv_freq;
  float amplitude = 1.0f;  ///< multiplies cosine and sine (YaRN)
  bool operator==(const Rope&) const = default;
};

/// Softmax attention with per-head q/k norms, grouped KV heads and an optional sigmoid output gate.
struct AttentionSpec {
  int heads = 0, kv_heads = 0, head_dim = 0;
  Rope rope;
  float scale = 1.0f;
  float norm_eps = 1e-6f;
  Vector q_norm, k_norm;     ///< gains [head_dim]
  bool output_gate = false;  ///< q rows hold [q_h | gate_h] per head, and the output is multiplied by sigmoid(gate)
};

/// Which experts a row goes to, from the scores of its router, and what they weigh. Of equal scores the lower id wins.
struct RouterSpec {
  enum class Score { softmax, sigmoid };
  Score score = Score::softmax;  ///< of the router's logits [E]
  int chosen = 1;                ///< experts of a row
  Vector bias;                   ///< [E], added for the choice and not for the weights; empty: none
  bool normalise = true;         ///< a row's weights sum to 1
  float factor = 1.0f;           ///< which then multiplies them
};

/// The gated MLPs of a layer's experts: gate, up [width, D], down [D, width].
struct ExpertMlps {
  Experts gate, up, down;
  float limit = 0;  ///< as swiglu()
};

/// GatedDeltaNet between its projections: convolution, gates, recurrence, gated norm.
struct GatedDeltaSpec {
  RecurrentShape shape;
  float norm_eps = 1e-6f;
  Vector conv;            ///< [K, C], the last row multiplies the current input
  Vector a_log, dt_bias;  ///< [nv]
  Vector norm;            ///< gain [Dv], stored as it is
};

/// A lane. Parameters are handed over once at load; every operation takes and gives handles. Rows are independent: a
/// row's result never depends on which rows share the call (docs/numerics.md says on which lane that holds to the bit).
/// Engine thread only.
class Ops {
 public:
  virtual ~Ops() = default;
  [[nodiscard]] virtual std::string describe() const = 0;  ///< "cpu, 2 threads, avx2"
  /// Scores of one row that are closer may decide either way, by which rows share its pass; 0 where a row's bits depend
  /// on nothing else (docs/numerics.md).
  [[nodiscard]] virtual double tie_tolerance() const = 0;

  // Parameters. A matrix stays where it is stored; the lane keeps its owner alive.
  [[nodiscard]] virtual Matrix matrix(const StoredMatrix& stored) = 0;
  [[nodiscard]] virtual Vector vector(std::vector<float> values) = 0;
  [[nodiscard]] virtual Experts experts(std::span<const StoredMatrix> each) = 0;  ///< all of one shape and packing

  // Caches.
  [[nodiscard]] virtual std::unique_ptr<Cache> make_kv_cache(const KvShape& shape) = 0;
  [[nodiscard]] virtual std::unique_ptr<Cache> make_recurrent_cache(const RecurrentShape& shape) = 0;

  // Rows.
  [[nodiscard]] virtual Tensor embed(const Matrix& table, std::span<const TokenId> ids) = 0;  // [R] -> [R, D]
  [[nodiscard]] virtual Tensor select(const Tensor& x, std::span<const int> rows) = 0;        // [R, D] -> [n, D]
  [[nodiscard]] virtual Tensor stack(std::span<const Tensor> parts) = 0;                      // rows one after another
  [[nodiscard]] virtual Tensor concat(const Tensor& left, const Tensor& right) = 0;  // [R, A], [R, B] -> [R, A+B]
  [[nodiscard]] virtual Tensor add(const Tensor& a, const Tensor& b) = 0;
  [[nodiscard]] virtual Tensor mix(const Tensor& a, const Tensor& b, float share) = 0;  // share * a + (1 - share) * b
  [[nodiscard]] virtual Tensor rms_norm(const Tensor& x, const Vector& gain, float eps) = 0;
  [[nodiscard]] virtual Tensor linear(const Tensor& x, const Matrix& w) = 0;  // [R, in] -> [R, out]
  /// linear() with the rows of w that the subset names alone: [R, in] -> [R, rows.size()], the very values of those
  /// columns. Unless a lane knows better, the whole product is made, read and picked from.
  [[nodiscard]] virtual Tensor linear_subset(const Tensor& x, const Matrix& w, const VocabularySubset& rows);
  [[nodiscard]] virtual bool gains_from_subset() const { return false; }  ///< linear_subset() costs what its rows do
  /// silu(gate) * up; with a limit L above 0: min(silu(gate), L) * clip(up, -L, L).
  [[nodiscard]] virtual Tensor swiglu(const Tensor& gate, const Tensor& up, float limit) = 0;
  /// Columns in runs of one width: `to` runs, the i-th that of number from[i]. [R, n * width] -> [R, to * width]
  [[nodiscard]] virtual Tensor pick_runs(const Tensor& x, std::span<const int> from, int width) = 0;
  /// x [R, G * n] times sigmoid(gate [R, G]), each gate for one run of n columns.
  [[nodiscard]] virtual Tensor gate_runs(const Tensor& x, const Tensor& gate) = 0;

  // The same, several at a time, for lanes where a step costs more than its arithmetic.
  [[nodiscard]] virtual std::vector<Tensor> linears(const Tensor& x, std::span<const Matrix* const> ws);  // one x
  [[nodiscard]] virtual Tensor linear_add(const Tensor& x, const Matrix& w, const Tensor& residual);  // residual + x w
  [[nodiscard]] virtual Tensor gated_linear(
      const Tensor& x, const Matrix& gate, const Matrix& up, float limit);  // swiglu of both

  /// residual plus the chosen experts' MLPs, each times its weight, in order of falling scores.
  ///   x, residual [R, D] · logits [R, E]  ->  [R, D]
  [[nodiscard]] virtual Tensor routed_mlp(const RouterSpec& spec, const ExpertMlps& experts, const Tensor& x,
      const Tensor& logits, const Tensor& residual) = 0;

  /// Norms and rotates k, appends k and v of every row, then attends for the rows in `query_rows` (ascending rows of
  /// the pass).
  ///   q     [n, H * Dh], or [n, H * 2 Dh] with an output gate: one row per entry of query_rows
  ///   k, v  [R, Hkv * Dh]
  ///   ->    [n, H * Dh]
  /// With no query rows only the cache is filled, and q is not read.
  virtual Tensor attention(const AttentionSpec& spec, const Tensor& q, std::span<const int> query_rows, const Tensor& k,
      const Tensor& v, std::span<const CacheSlice> slices) = 0;

  ///   qkv [R, C] · z [R, nv * Dv] · b, a [R, nv]  ->  [R, nv * Dv]
  [[nodiscard]] virtual Tensor gated_delta(const GatedDeltaSpec& spec, const Tensor& qkv, const Tensor& z,
      const Tensor& b, const Tensor& a, std::span<const CacheSlice> slices) = 0;

  // Host.
  [[nodiscard]] virtual Tensor from_host(int rows, int width, std::span<const float> values) = 0;
  /// The values, row-major [rows, width]. On a lazy lane this evaluates. Valid while `x` or a copy of it lives.
  [[nodiscard]] virtual std::span<const float> read(const Tensor& x) = 0;

  // Debugging. Model code names what it makes; nothing happens unless a tap listens.
  void observe(std::string_view name, const Tensor& x) {
    if (tap_ != nullptr) tap_->see(name, x);
  }
  [[nodiscard]] Tap* tap() const { return tap_; }
  void set_tap(Tap* tap) { tap_ = tap; }  ///< borrowed; null takes it off
  /// Times every operation from now on; borrowed, null takes it off. A lazy lane counts building, not computing.
  void set_profile(Profile* profile) { profile_ = profile; }

 protected:
  [[nodiscard]] Profile* profile() const { return profile_; }

 private:
  Tap* tap_ = nullptr;
  Profile* profile_ = nullptr;
};

/// Arithmetic of the CPU lane. float32: activations, keys and values in float32, as the references have them. int8:
/// affine matrices see activations as int8 with a scale per 64 inputs; keys and values are bf16 (docs/numerics.md).
enum class CpuActivations { float32, int8 };

/// The CPU lane on our own kernels. threads = 0 uses every core that this process may use.
[[nodiscard]] std::unique_ptr<Ops> make_cpu_ops(int threads = 0, CpuActivations activations = CpuActivations::float32);

/// Where the MLX lane computes; automatic is a GPU where MLX has one.
enum class MlxDevice { automatic, cpu, gpu };

/// The MLX lane. Throws ErrorCode::usage in a build without MLX, and for a GPU that is not there. MLX keeps one device
/// per process and one stream per thread: use one such lane at a time, on the thread that made it.
[[nodiscard]] std::unique_ptr<Ops> make_mlx_ops(MlxDevice device = MlxDevice::automatic);
[[nodiscard]] bool has_mlx();      ///< this build has the MLX lane
[[nodiscard]] bool has_mlx_gpu();  ///< and MLX has a GPU here

}  // namespace foresay
