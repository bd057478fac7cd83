#include "model/layers/moe.h"

#include <cstring>
#include <memory>

#include "base/error.h"

namespace foresay {
namespace {

/// A raw matrix [rows, columns] of elements of `size` bytes, transposed into memory of its own.
TensorView transposed(const TensorView& view, int rows, int columns) {
  const std::size_t size = size_of(view.dtype);
  auto memory = std::make_shared<std::vector<std::byte>>(view.bytes);
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(columns); ++c) {
      std::memcpy(memory->data() + (c * static_cast<std::size_t>(rows) + r) * size,
          view.data + (r * static_cast<std::size_t>(columns) + c) * size, size);
    }
  }
  TensorView turned = view;
  turned.shape = {columns, rows};
  turned.data = memory->data();
  turned.owner = std::move(memory);
  return turned;
}

/// Rows [first, first + count) of a matrix.
StoredMatrix rows_of(StoredMatrix stored, int first, int count) {
  stored.out = count;
  stored.weight = stored.weight.part(first, count);
  if (stored.quant) {
    stored.scales = stored.scales.part(first, count);
    if (stored.quant->mode == QuantMode::affine) stored.biases = stored.biases.part(first, count);
  }
  return stored;
}

/// Fused experts are stored transposed by some exporters. One of the two tensors may be square; both together decide.
bool is_transposed(const WeightSource& source, const std::string& prefix, const MoeShape& shape, int hidden) {
  const auto axes = [&](const char* module) {
    const TensorView* view = source.peek(prefix + module);
    if (view == nullptr) view = source.peek(prefix + module + ".weight");
    return view != nullptr && view->shape.size() == 3 ? std::pair(view->shape[1], view->shape[2])
                                                      : std::pair<std::int64_t, std::int64_t>();
  };
  const std::pair<std::int64_t, std::int64_t> straight_up{2 * shape.width, hidden}, straight_down{hidden, shape.width};
  const auto turned = [](const auto& pair) { return std::pair(pair.second, pair.first); };
  const auto up = axes("gate_up_proj"), down = axes("down_proj");
  const bool is_straight = up == straight_up && down == straight_down;
  return !is_straight && up == turned(straight_up) && down == turned(straight_down);
}

ExpertMlps stacked(WeightSource& source, const std::string& prefix, const MoeShape& shape, int hidden, Ops& ops) {
  return {.gate = ops.experts(source.stack(prefix + "gate_proj", shape.experts, shape.width, hidden)),
      .up = ops.experts(source.stack(prefix + "up_proj", shape.experts, shape.width, hidden)),
      .down = ops.experts(source.stack(prefix + "down_proj", shape.experts, hidden, shape.width))};
}

ExpertMlps fused(WeightSource& source, const std::string& prefix, const MoeShape& shape, int hidden, Ops& ops) {
  std::vector<StoredMatrix> both, down;
  if (is_transposed(source, prefix, shape, hidden)) {
    both = source.stack(prefix + "gate_up_proj", shape.experts, hidden, 2 * shape.width);
    down = source.stack(prefix + "down_proj", shape.experts, shape.width, hidden);
    for (std::vector<StoredMatrix>* all : {&both, &down}) {
      for (StoredMatrix& each : *all) {
        each.weight = transposed(each.weight, each.out, each.in);
        std::swap(each.out, each.in);
      }
    }
  } else {
    both = source.stack(prefix + "gate_up_proj", shape.experts, 2 * shape.width, hidden);
    down = source.stack(prefix + "down_proj", shape.experts, hidden, shape.width);
  }
  std::vector<StoredMatrix> gate, up;
  for (const StoredMatrix& each : both) {
    gate.push_back(rows_of(each, 0, shape.width));
    up.push_back(rows_of(each, shape.width, shape.width));
  }
  return {.gate = ops.experts(gate), .up = ops.experts(up), .down = ops.experts(down)};
}

ExpertMlps numbered(WeightSource& source, const std::string& prefix, const MoeShape& shape, int hidden, Ops& ops) {
  std::vector<StoredMatrix> gate, up, down;
  for (int e = 0; e < shape.experts; ++e) {
    const std::string expert = fmt::format("{}{}.", prefix, e);
    gate.push_back(source.stored(expert + "gate_proj", shape.width, hidden));
    up.push_back(source.stored(expert + "up_proj", shape.width, hidden));
    down.push_back(source.stored(expert + "down_proj", hidden, shape.width));
  }
  for (const std::vector<StoredMatrix>* all : {&gate, &up, &down}) {
    for (const StoredMatrix& each : *all) {
      if (each.quant == all->front().quant && each.weight.dtype == all->front().weight.dtype) continue;
      fail(ErrorCode::unsupported, "[load] {} and {} in {} are packed differently; experts of a layer have one packing",
          all->front().module, each.module, each.weight.file);
    }
  }
  return {.gate = ops.experts(gate), .up = ops.experts(up), .down = ops.experts(down)};
}

}  // namespace

ExpertMlps load_experts(WeightSource& source, const std::string& prefix, const MoeShape& shape, int hidden, Ops& ops) {
  const auto has = [&](const std::string& module) { return source.has(module) || source.has(module + ".weight"); };
  if (has(prefix + "experts.gate_up_proj") || has(prefix + "experts.down_proj"))
    return fused(source, prefix + "experts.", shape, hidden, ops);
  if (has(prefix + "experts.0.gate_proj")) return numbered(source, prefix + "experts.", shape, hidden, ops);
  return stacked(source, prefix + "switch_mlp.", shape, hidden, ops);
}

Moe Moe::load(
    WeightSource& source, const std::string& prefix, const MoeShape& shape, int hidden, RouterSpec spec, Ops& ops) {
  Moe moe;
  moe.spec = std::move(spec);
  moe.router = ops.matrix(source.router(prefix + "gate", shape.experts, hidden));
  const ReadShare whole = source.read_share();
  source.set_read_share(whole * (static_cast<double>(shape.chosen) / shape.experts));
  moe.experts = load_experts(source, prefix, shape, hidden, ops);
  source.set_read_share(whole);
  if (shape.shared_width > 0) {
    moe.shared = GatedMlp::load(source, prefix + "shared_expert.", hidden, shape.shared_width);
    if (shape.shared_gated) moe.shared_gate = ops.matrix(source.router(prefix + "shared_expert_gate", 1, hidden));
  }
  return moe;
}

Tensor Moe::forward(Ops& ops, const Tensor& x, const Tensor& residual) const {
  const TapScope scope(ops.tap(), "mlp.");
  const Tensor logits = ops.linear(x, router);  // [R, E]
  ops.observe("router", logits);
  Tensor y = residual;
  if (shared) {
    const Tensor inner = ops.gated_linear(x, shared->gate, shared->up, shared->limit);  // [R, shared width]
    if (shared_gate) {
      const Tensor gated = ops.gate_runs(ops.linear(inner, shared->down), ops.linear(x, *shared_gate));
      ops.observe("shared", gated);
      y = ops.add(residual, gated);
    } else {
      y = ops.linear_add(inner, shared->down, residual);
    }
  }
  y = ops.routed_mlp(spec, experts, x, logits, y);
  ops.observe("sum", y);
  return y;
}

}  // namespace foresay
