#include "model/ops_cpu/ops_cpu.h"

#include <algorithm>
#include <cstring>

#include "base/cpu_features.h"
#include "base/error.h"
#include "kernels/row_ops.h"
#include "model/weight_view.h"

namespace foresay {
void cpu::check(bool ok, const char* operation, const char* what) {
  if (!ok) fail(ErrorCode::internal, "[{}] {}", operation, what);
}

namespace {

using cpu::Builder;
using cpu::check;

constexpr int kRowsAtOnce = 8;  // fewer rows than this are not worth waking anybody

}  // namespace

std::unique_ptr<Ops> make_cpu_ops(int threads, CpuActivations activations) {
  return std::make_unique<CpuOps>(threads > 0 ? threads : available_cores(), activations);
}

CpuOps::CpuOps(int threads, CpuActivations activations) : activations_(activations), pool_(threads) {}

void CpuOps::for_rows(int rows, const std::function<void(int)>& body) {
  if (rows < kRowsAtOnce) {
    for (int r = 0; r < rows; ++r) body(r);
    return;
  }
  pool_.parallel_for(rows, 1 + rows / (8 * pool_.threads()), [&](int first, int last) {
    for (int r = first; r < last; ++r) body(r);
  });
}

std::string CpuOps::describe() const {
  return fmt::format("cpu, {} thread{}, {}, {} activations", pool_.threads(), pool_.threads() == 1 ? "" : "s",
      name_of(current_isa()), activations_ == CpuActivations::int8 ? "int8" : "float");
}

std::shared_ptr<const cpu::Weights> cpu::weights_of(const StoredMatrix& stored) {
  auto weights = std::make_shared<cpu::Weights>();
  weights->stored = stored;
  weights->view = weight_view(stored);
  return weights;
}

Matrix CpuOps::matrix(const StoredMatrix& stored) {
  return {stored.out, stored.in, cpu::weights_of(stored)};
}

Vector CpuOps::vector(std::vector<float> values) {
  auto floats = std::make_shared<cpu::Parameters>();
  floats->values = std::move(values);
  const int size = static_cast<int>(floats->values.size());
  return {size, std::move(floats)};
}

std::unique_ptr<Cache> CpuOps::make_kv_cache(const KvShape& shape) {
  return std::make_unique<PagedKvCache>(shape, activations_ == CpuActivations::int8 ? KvType::bf16 : KvType::f32);
}
std::unique_ptr<Cache> CpuOps::make_recurrent_cache(const RecurrentShape& shape) {
  return std::make_unique<RecurrentCache>(shape);
}

Tensor CpuOps::embed(const Matrix& table, std::span<const TokenId> ids) {
  const ProfileScope timed(profile(), "embed");
  const WeightView& view = cpu::view(table);
  Builder out = make(static_cast<int>(ids.size()), table.in);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    check(ids[i] >= 0 && ids[i] < table.out, "embed", "token id outside the vocabulary");
    unpack_row(view, ids[i], out.row(static_cast<int>(i)));
  }
  return std::move(out).done();
}

Tensor CpuOps::select(const Tensor& x, std::span<const int> rows) {
  const ProfileScope timed(profile(), "select");
  Builder out = make(static_cast<int>(rows.size()), x.width);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    check(rows[i] >= 0 && rows[i] < x.rows, "select", "row outside the tensor");
    std::memcpy(out.row(static_cast<int>(i)), cpu::row(x, rows[i]), sizeof(float) * static_cast<std::size_t>(x.width));
  }
  return std::move(out).done();
}

Tensor CpuOps::stack(std::span<const Tensor> parts) {
  const ProfileScope timed(profile(), "stack");
  int rows = 0;
  for (const Tensor& part : parts) rows += part.rows;
  Builder out = make(rows, parts.empty() ? 0 : parts.front().width);
  int at = 0;
  for (const Tensor& part : parts) {
    check(part.width == parts.front().width, "stack", "widths differ");
    if (part.rows > 0) {
      std::memcpy(out.row(at), cpu::data(part),
          sizeof(float) * static_cast<std::size_t>(part.rows) * static_cast<std::size_t>(part.width));
    }
    at += part.rows;
  }
  return std::move(out).done();
}

Tensor CpuOps::concat(const Tensor& left, const Tensor& right) {
  const ProfileScope timed(profile(), "concat");
  check(left.rows == right.rows, "concat", "row counts differ");
  Builder out = make(left.rows, left.width + right.width);
  for (int r = 0; r < left.rows; ++r) {
    std::copy_n(cpu::row(left, r), left.width, out.row(r));
    std::copy_n(cpu::row(right, r), right.width, out.row(r) + left.width);
  }
  return std::move(out).done();
}

Tensor CpuOps::add(const Tensor& a, const Tensor& b) {
  const ProfileScope timed(profile(), "add");
  check(a.rows == b.rows && a.width == b.width, "add", "shapes differ");
  Builder out = make(a.rows, a.width);
  for_rows(a.rows, [&](int r) { add_row(cpu::row(a, r), cpu::row(b, r), a.width, out.row(r)); });
  return std::move(out).done();
}

Tensor CpuOps::mix(const Tensor& a, const Tensor& b, float share) {
  const ProfileScope timed(profile(), "mix");
  check(a.rows == b.rows && a.width == b.width, "mix", "shapes differ");
  Builder out = make(a.rows, a.width);
  for (int r = 0; r < a.rows; ++r) {
    std::transform(cpu::row(a, r), cpu::row(a, r) + a.width, cpu::row(b, r), out.row(r),
        [&](float x, float y) { return share * x + (1.0f - share) * y; });
  }
  return std::move(out).done();
}

Tensor CpuOps::rms_norm(const Tensor& x, const Vector& gain, float eps) {
  const ProfileScope timed(profile(), "rms_norm");
  check(gain.size == x.width, "rms_norm", "gain and row differ in width");
  Builder out = make(x.rows, x.width);
  for_rows(x.rows, [&](int r) { rms_norm_row(cpu::row(x, r), cpu::data(gain), eps, x.width, out.row(r)); });
  return std::move(out).done();
}

Tensor CpuOps::swiglu(const Tensor& gate, const Tensor& up, float limit) {
  const ProfileScope timed(profile(), "swiglu");
  check(gate.rows == up.rows && gate.width == up.width, "swiglu", "shapes differ");
  Builder out = make(gate.rows, gate.width);
  for_rows(gate.rows, [&](int r) { swiglu_row(cpu::row(gate, r), cpu::row(up, r), limit, gate.width, out.row(r)); });
  return std::move(out).done();
}

Tensor CpuOps::pick_runs(const Tensor& x, std::span<const int> from, int width) {
  const ProfileScope timed(profile(), "pick_runs");
  Builder out = make(x.rows, static_cast<int>(from.size()) * width);
  for (const int run : from) check(run >= 0 && (run + 1) * width <= x.width, "pick_runs", "run outside the row");
  for_rows(x.rows, [&](int r) {
    float* to = out.row(r);
    for (const int run : from) to = std::copy_n(cpu::row(x, r) + run * width, width, to);
  });
  return std::move(out).done();
}

Tensor CpuOps::gate_runs(const Tensor& x, const Tensor& gate) {
  const ProfileScope timed(profile(), "gate_runs");
  check(gate.rows == x.rows && gate.width > 0 && x.width % gate.width == 0, "gate_runs", "shapes differ");
  const int width = x.width / gate.width;
  Builder out = make(x.rows, x.width);
  for_rows(x.rows, [&](int r) {
    for (int run = 0; run < gate.width; ++run) {
      const float* from = cpu::row(x, r) + run * width;
      const float share = sigmoid(cpu::row(gate, r)[run]);
      std::transform(from, from + width, out.row(r) + run * width, [&](float value) { return value * share; });
    }
  });
  return std::move(out).done();
}

Tensor CpuOps::from_host(int rows, int width, std::span<const float> values) {
  check(values.size() == static_cast<std::size_t>(rows) * static_cast<std::size_t>(width), "from_host",
      "size and shape differ");
  Builder out = make(rows, width);
  std::copy(values.begin(), values.end(), out.row(0));
  return std::move(out).done();
}

std::span<const float> CpuOps::read(const Tensor& x) {
  return {cpu::data(x), static_cast<std::size_t>(x.rows) * static_cast<std::size_t>(x.width)};
}

}  // namespace foresay
