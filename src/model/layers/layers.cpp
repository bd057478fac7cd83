#include "model/layers/layers.h"

#include <numeric>
#include <utility>

#include "base/error.h"

namespace foresay {

GatedMlp GatedMlp::load(WeightSource& source, const std::string& prefix, int hidden, int width) {
  return {source.matrix(prefix + "gate_proj", width, hidden), source.matrix(prefix + "up_proj", width, hidden),
      source.matrix(prefix + "down_proj", hidden, width)};
}

Tensor GatedMlp::forward(Ops& ops, const Tensor& x, const Tensor& residual) const {
  const TapScope scope(ops.tap(), "mlp.");
  const Tensor inner = ops.gated_linear(x, gate, up, limit);  // [R, width]
  ops.observe("inner", inner);
  Tensor y = ops.linear_add(inner, down, residual);
  ops.observe("sum", y);
  return y;
}

Attention Attention::load(WeightSource& source, const std::string& prefix, int hidden, AttentionSpec spec,
    bool zero_centred_norms, bool head_gates) {
  const int q_width = spec.heads * spec.head_dim, kv_width = spec.kv_heads * spec.head_dim;
  Attention attention;
  attention.q = source.matrix(prefix + "q_proj", spec.output_gate ? 2 * q_width : q_width, hidden);
  attention.k = source.matrix(prefix + "k_proj", kv_width, hidden);
  attention.v = source.matrix(prefix + "v_proj", kv_width, hidden);
  attention.o = source.matrix(prefix + "o_proj", hidden, q_width);
  if (head_gates) attention.head_gate = source.matrix(prefix + "g_proj", spec.heads, hidden);
  spec.q_norm = source.gain(prefix + "q_norm.weight", spec.head_dim, zero_centred_norms);
  spec.k_norm = source.gain(prefix + "k_norm.weight", spec.head_dim, zero_centred_norms);
  attention.spec = std::move(spec);
  return attention;
}

Tensor Attention::forward(Ops& ops, const Tensor& x, const Tensor& residual, std::span<const int> query_rows,
    std::span<const CacheSlice> slices) const {
  const TapScope scope(ops.tap(), "attention.");
  Tensor queries, keys, values;  // [n, H * Dh (* 2)], [R, Hkv * Dh]
  if (static_cast<int>(query_rows.size()) == x.rows) {
    const Matrix* all[] = {&q, &k, &v};
    auto products = ops.linears(x, all);
    queries = std::move(products[0]);
    keys = std::move(products[1]);
    values = std::move(products[2]);
  } else {
    const Matrix* both[] = {&k, &v};
    auto products = ops.linears(x, both);
    keys = std::move(products[0]);
    values = std::move(products[1]);
    if (!query_rows.empty()) queries = ops.linear(ops.select(x, query_rows), q);
  }
  ops.observe("q", queries);
  ops.observe("k", keys);
  ops.observe("v", values);
  Tensor mixed = ops.attention(spec, queries, query_rows, keys, values, slices);  // [n, H * Dh]
  if (query_rows.empty()) return {};                                              // history only
  if (head_gate) {
    const bool is_whole = static_cast<int>(query_rows.size()) == x.rows;
    mixed = ops.gate_runs(mixed, ops.linear(is_whole ? x : ops.select(x, query_rows), *head_gate));
  }
  ops.observe("mixed", mixed);
  Tensor y = ops.linear_add(mixed, o, residual);
  ops.observe("sum", y);
  return y;
}

namespace {

/// Fused products to qkv, z, b, a. A key head's block of the first is its q, its k, and the v and then the z of its
/// value heads; of the second the b and then the a of those.
std::vector<Tensor> split_by_key_head(Ops& ops, const Tensor& qkvz, const Tensor& ba, const RecurrentShape& shape) {
  const int run = std::gcd(shape.key_dim, shape.value_dim), share = shape.value_heads / shape.key_heads;
  const int k = shape.key_dim / run, v = share * shape.value_dim / run, block = 2 * k + 2 * v;  // in runs
  const auto pick = [&](const Tensor& from, int width, int per_block, std::span<const std::pair<int, int>> parts) {
    std::vector<int> runs;
    for (const auto& [first, count] : parts) {
      for (int head = 0; head < shape.key_heads; ++head) {
        for (int i = 0; i < count; ++i) runs.push_back(head * per_block + first + i);
      }
    }
    return ops.pick_runs(from, runs, width);
  };
  const std::pair<int, int> qkv[] = {{0, k}, {k, k}, {2 * k, v}}, z[] = {{2 * k + v, v}}, b[] = {{0, share}},
                            a[] = {{share, share}};
  return {pick(qkvz, run, block, qkv), pick(qkvz, run, block, z), pick(ba, 1, 2 * share, b), pick(ba, 1, 2 * share, a)};
}

}  // namespace

GatedDeltaNet GatedDeltaNet::load(WeightSource& source, const std::string& prefix, int hidden,
    const RecurrentShape& shape, float norm_eps, Ops& ops) {
  const int v_width = shape.value_heads * shape.value_dim;
  GatedDeltaNet net;
  if (source.has(prefix + "in_proj_qkvz.weight")) {
    net.in.push_back(source.matrix(prefix + "in_proj_qkvz", shape.conv_channels + v_width, hidden));
    net.in.push_back(source.matrix(prefix + "in_proj_ba", 2 * shape.value_heads, hidden));
  } else {
    net.in.push_back(source.matrix(prefix + "in_proj_qkv", shape.conv_channels, hidden));
    net.in.push_back(source.matrix(prefix + "in_proj_z", v_width, hidden));
    net.in.push_back(source.matrix(prefix + "in_proj_b", shape.value_heads, hidden));
    net.in.push_back(source.matrix(prefix + "in_proj_a", shape.value_heads, hidden));
  }
  net.out = source.matrix(prefix + "out_proj", hidden, v_width);
  net.spec.shape = shape;
  net.spec.norm_eps = norm_eps;
  // [C, 1, K] (Hugging Face) and [C, K, 1] (MLX) are the same bytes: the tap order does not change.
  if (const TensorView* conv = source.peek(prefix + "conv1d.weight")) {
    const std::vector<std::int64_t> hf = {shape.conv_channels, 1, shape.conv_kernel},
                                    mlx = {shape.conv_channels, shape.conv_kernel, 1};
    if (conv->shape != hf && conv->shape != mlx) {
      fail(ErrorCode::checkpoint, "[load] {} in {}: expected {} or {}, found {}", conv->name, conv->file,
          describe_shape(hf), describe_shape(mlx), describe_shape(conv->shape));
    }
  }
  const std::vector<float> taps = source.values(prefix + "conv1d.weight", shape.conv_channels * shape.conv_kernel);
  std::vector<float> by_tap;  // [C, K] -> [K, C]: channels lie side by side
  for (int k = 0; k < shape.conv_kernel; ++k) {
    for (int c = 0; c < shape.conv_channels; ++c) {
      by_tap.push_back(taps[static_cast<std::size_t>(c * shape.conv_kernel + k)]);
    }
  }
  net.spec.conv = ops.vector(std::move(by_tap));
  net.spec.a_log = ops.vector(source.values(prefix + "A_log", shape.value_heads));
  net.spec.dt_bias = ops.vector(source.values(prefix + "dt_bias", shape.value_heads));
  net.spec.norm =
      source.gain(prefix + "norm.weight", shape.value_dim, /*zero_centred=*/false);  // the one norm stored as it is
  return net;
}

Tensor GatedDeltaNet::forward(
    Ops& ops, const Tensor& x, const Tensor& residual, std::span<const CacheSlice> slices) const {
  const TapScope scope(ops.tap(), "recurrent.");
  std::vector<const Matrix*> all;
  for (const Matrix& each : in) all.push_back(&each);
  std::vector<Tensor> products = ops.linears(x, all);
  if (products.size() == 2) products = split_by_key_head(ops, products[0], products[1], spec.shape);
  const Tensor &u = products[0], &gate = products[1], &beta = products[2], &decay = products[3];
  ops.observe("qkv", u);
  ops.observe("z", gate);
  ops.observe("b", beta);
  ops.observe("a", decay);
  const Tensor mixed = ops.gated_delta(spec, u, gate, beta, decay, slices);  // [R, nv * Dv]
  ops.observe("mixed", mixed);
  Tensor y = ops.linear_add(mixed, out, residual);
  ops.observe("sum", y);
  return y;
}

}  // namespace foresay
