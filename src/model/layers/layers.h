// model/layers/layers.h: blocks that several families are built from, each over model/ops.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/ops.h"
#include "model/weight_source.h"

namespace foresay {

// Each adds what it makes to the residual stream: `residual` [n, D] -> [n, D].

/// residual + down(silu(gate(x)) * up(x)).
struct GatedMlp {
  Matrix gate, up, down;
  float limit = 0;  ///< as Ops::swiglu

  /// Takes gate_proj, up_proj, down_proj under `prefix` ("layers.0.mlp.").
  static GatedMlp load(WeightSource& source, const std::string& prefix, int hidden, int width);
  [[nodiscard]] Tensor forward(Ops& ops, const Tensor& x, const Tensor& residual) const;  // x [R, D]
};

/// Softmax attention: q, k, v projections, the operation of AttentionSpec, output projection.
struct Attention {
  AttentionSpec spec;
  Matrix q, k, v, o;
  std::optional<Matrix> head_gate;  ///< [H, D]: each head's output is multiplied by the sigmoid of its gate

  /// Takes q_proj, k_proj, v_proj, o_proj, q_norm, k_norm under `prefix`, and g_proj with `head_gates`. `spec` holds
  /// everything but the norms.
  static Attention load(WeightSource& source, const std::string& prefix, int hidden, AttentionSpec spec,
      bool zero_centred_norms, bool head_gates = false);
  /// x [R, D]; `residual` has the n query rows, the other rows only fill the cache. Nothing without query rows.
  [[nodiscard]] Tensor forward(Ops& ops, const Tensor& x, const Tensor& residual, std::span<const int> query_rows,
      std::span<const CacheSlice> slices) const;
};

/// GatedDeltaNet: projections, conv1d, A_log, dt_bias, norm, out_proj. The projections are split (in_proj_qkv,
/// in_proj_z, in_proj_b, in_proj_a), or fused (in_proj_qkvz, in_proj_ba) with their rows grouped by key head; then
/// their products are put in the split order.
struct GatedDeltaNet {
  GatedDeltaSpec spec;
  std::vector<Matrix> in;  ///< qkv, z, b, a; or qkvz, ba
  Matrix out;

  static GatedDeltaNet load(WeightSource& source, const std::string& prefix, int hidden, const RecurrentShape& shape,
      float norm_eps, Ops& ops);
  [[nodiscard]] Tensor forward(
      Ops& ops, const Tensor& x, const Tensor& residual, std::span<const CacheSlice> slices) const;  // x [R, D]
};

}  // namespace foresay
