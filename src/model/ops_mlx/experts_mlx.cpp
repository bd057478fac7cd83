// MLX lane: routed experts, by gathered products. Nothing is read on the host: a pass stays one graph.
#include "model/ops_mlx/ops_mlx.h"
#include "model/ops_mlx/weights_mlx.h"

namespace foresay {
namespace {

const on_mlx::ExpertWeights& weights(const Experts& experts) {
  return static_cast<const on_mlx::ExpertWeights&>(*experts.storage);
}

}  // namespace

Experts MlxOps::experts(std::span<const StoredMatrix> each) {
  return {static_cast<int>(each.size()), each.front().out, each.front().in,
      std::make_shared<on_mlx::ExpertWeights>(
          std::vector<StoredMatrix>(each.begin(), each.end()), /*widen=*/device_ == mx::Device::cpu)};
}

Tensor MlxOps::routed_mlp(
    const RouterSpec& spec, const ExpertMlps& experts, const Tensor& x, const Tensor& logits, const Tensor& residual) {
  on_mlx::check(logits.rows == x.rows && logits.width == experts.gate.count && spec.chosen >= 1 &&
                    spec.chosen <= experts.gate.count,
      "routed_mlp", "router logits have the wrong shape");
  on_mlx::check(
      experts.gate.in == x.width && experts.down.out == x.width && residual.rows == x.rows && residual.width == x.width,
      "routed_mlp", "shapes differ");
  if (x.rows == 0) return residual;

  const bool softmax = spec.score == RouterSpec::Score::softmax;
  const mx::array scores = softmax ? mx::softmax(on_mlx::array(logits), 1) : mx::sigmoid(on_mlx::array(logits));
  const mx::array keys = spec.bias.size > 0 ? mx::add(scores, on_mlx::array(spec.bias)) : scores;
  // The sort is stable: of equal keys the lower id comes first.
  const mx::array ids = mx::slice(mx::argsort(mx::negative(keys), 1), {0, 0}, {x.rows, spec.chosen});  // [R, k]
  mx::array shares = mx::take_along_axis(scores, ids, 1);
  if (spec.normalise) shares = mx::divide(shares, mx::add(mx::sum(shares, 1, true), mx::array(1e-20f)));
  shares = mx::multiply(shares, mx::array(spec.factor));

  const mx::array input = mx::reshape(on_mlx::array(x), {x.rows, 1, 1, x.width});
  const mx::array inner =
      on_mlx::swiglu(weights(experts.gate).product(input, ids), weights(experts.up).product(input, ids), experts.limit);
  const mx::array each = mx::reshape(weights(experts.down).product(inner, ids), {x.rows, spec.chosen, x.width});
  const mx::array sum = mx::sum(mx::multiply(each, mx::expand_dims(shares, 2)), 1);
  return on_mlx::tensor(mx::add(on_mlx::array(residual), sum));
}

}  // namespace foresay
