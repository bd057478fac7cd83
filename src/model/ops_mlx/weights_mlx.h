// model/ops_mlx/weights_mlx.h: a weight matrix of the MLX lane, raw or packed.
#pragma once

#include <mlx/mlx.h>

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/quantisation.h"
#include "model/tensor.h"

namespace foresay::on_mlx {

namespace mx = mlx::core;

/// Copies the file's bytes into MLX arrays at first use, so that looking at a checkpoint stays cheap. Affine, mxfp4,
/// mxfp8 and nvfp4 matrices stay packed.
class Weights final : public Storage {
 public:
  /// With `widen`, floating values (and the scales and offsets of affine packing) become float32 at once and products
  /// run in float32. Otherwise products run in the stored type, bfloat16 where that is not a float.
  /// Throws ErrorCode::unsupported for raw values that are not f32, f16 or bf16.
  Weights(const StoredMatrix& stored, bool widen);

  [[nodiscard]] mx::array product(const mx::array& x) const;  ///< float32 [R, in] -> float32 [R, out]
  [[nodiscard]] mx::array rows(const mx::array& ids) const;   ///< int32 [n] -> float32 [n, in], unpacked

 private:
  void load() const;

  mutable StoredMatrix stored_;  ///< holds the mapped file until load()
  mx::Dtype compute_;            ///< type that products run in
  std::string mode_;             ///< MLX's name of the packing; empty for a raw matrix
  mutable std::optional<mx::array> weight_, scales_, biases_;
};

/// The matrices of a layer's experts, stacked: [E, out, in] or packed. Otherwise as Weights.
class ExpertWeights final : public Storage {
 public:
  ExpertWeights(std::vector<StoredMatrix> each, bool widen);

  /// x float32 [R, n, 1, in], of which row r goes through the experts ids [R, k]; n is k, or 1 where one input goes
  /// through all of them. -> float32 [R, k, 1, out]
  [[nodiscard]] mx::array product(const mx::array& x, const mx::array& ids) const;

 private:
  void load() const;

  mutable std::vector<StoredMatrix> each_;  ///< hold the mapped file until load()
  std::optional<QuantGeometry> quant_;
  mx::Dtype compute_ = mx::float32;
  mutable std::optional<mx::array> weight_, scales_, biases_;
};

}  // namespace foresay::on_mlx
