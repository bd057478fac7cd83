#include "model/ops_mlx/ops_mlx.h"

#include <algorithm>

#include "base/error.h"
#include "model/ops_mlx/kv_cache_mlx.h"
#include "model/ops_mlx/recurrent_cache_mlx.h"
#include "model/ops_mlx/weights_mlx.h"

namespace foresay {
namespace on_mlx {

const mx::array& array(const Tensor& x) {
  return static_cast<const Array&>(*x.storage).value;
}
const mx::array& array(const Vector& v) {
  return static_cast<const Array&>(*v.storage).value;
}

Tensor tensor(mx::array value) {
  const int rows = value.shape(0), width = value.shape(1);
  return {rows, width, std::make_shared<Array>(std::move(value))};
}

mx::array rows(const mx::array& x, int first, int count) {
  mx::Shape start(x.ndim(), 0), stop = x.shape();
  start[0] = first;
  stop[0] = first + count;
  return mx::slice(x, std::move(start), std::move(stop));
}

mx::array swiglu(const mx::array& gate, const mx::array& up, float limit) {
  const mx::array activated = mx::multiply(gate, mx::sigmoid(gate));
  if (limit <= 0) return mx::multiply(activated, up);
  return mx::multiply(mx::minimum(activated, mx::array(limit)), mx::clip(up, mx::array(-limit), mx::array(limit)));
}

std::vector<CacheSlice> in_row_order(std::span<const CacheSlice> slices) {
  std::vector<CacheSlice> sorted(slices.begin(), slices.end());
  std::ranges::sort(sorted, {}, &CacheSlice::first);
  return sorted;
}

void check(bool ok, const char* operation, const char* what) {
  if (!ok) fail(ErrorCode::internal, "[{}] {}", operation, what);
}

}  // namespace on_mlx

namespace {

using on_mlx::array;
using on_mlx::check;
using on_mlx::tensor;

Tensor no_rows(int width) {
  return tensor(mx::zeros({0, width}, mx::float32));
}

mx::array indices(std::span<const int> values) {
  return mx::array(values.begin(), {static_cast<int>(values.size())}, mx::int32);
}

}  // namespace

bool has_mlx() {
  return true;
}

bool has_mlx_gpu() {
  return mx::is_available(mx::Device::gpu);
}

std::unique_ptr<Ops> make_mlx_ops(MlxDevice device) {
  if (device == MlxDevice::gpu && !has_mlx_gpu()) {
    fail(ErrorCode::usage, "[mlx] expected a GPU, found none that MLX {} can use; use its CPU device (--device cpu)",
        mx::version());
  }
  const bool gpu = device == MlxDevice::gpu || (device == MlxDevice::automatic && has_mlx_gpu());
  return std::make_unique<MlxOps>(gpu ? mx::Device::gpu : mx::Device::cpu);
}

MlxOps::MlxOps(mx::Device device) : device_(device) {
  mx::set_default_device(device_);
}

std::string MlxOps::describe() const {
  if (device_ == mx::Device::cpu) return fmt::format("mlx {}, cpu", mx::version());
  const auto& info = mx::device_info(device_);
  const auto name = info.find("device_name");
  const auto* text = name == info.end() ? nullptr : std::get_if<std::string>(&name->second);
  return fmt::format("mlx {}, gpu{}", mx::version(), text == nullptr ? "" : " (" + *text + ")");
}

Matrix MlxOps::matrix(const StoredMatrix& stored) {
  return {stored.out, stored.in, std::make_shared<on_mlx::Weights>(stored, /*widen=*/device_ == mx::Device::cpu)};
}

Vector MlxOps::vector(std::vector<float> values) {
  const int size = static_cast<int>(values.size());
  return {size, std::make_shared<on_mlx::Array>(mx::array(values.begin(), {size}, mx::float32))};
}

std::unique_ptr<Cache> MlxOps::make_kv_cache(const KvShape& shape) {
  return std::make_unique<MlxKvCache>(shape);
}
std::unique_ptr<Cache> MlxOps::make_recurrent_cache(const RecurrentShape& shape) {
  return std::make_unique<MlxRecurrentCache>(shape);
}

Tensor MlxOps::embed(const Matrix& table, std::span<const TokenId> ids) {
  evaluate_pending();  // a pass begins: the one before must not become part of its graph
  if (ids.empty()) return no_rows(table.in);
  for (const TokenId id : ids) check(id >= 0 && id < table.out, "embed", "token id outside the vocabulary");
  const std::vector<int> wanted(ids.begin(), ids.end());
  return tensor(static_cast<const on_mlx::Weights&>(*table.storage).rows(indices(wanted)));
}

Tensor MlxOps::select(const Tensor& x, std::span<const int> rows) {
  if (rows.empty()) return no_rows(x.width);
  for (const int row : rows) check(row >= 0 && row < x.rows, "select", "row outside the tensor");
  return tensor(mx::take(array(x), indices(rows), 0));
}

Tensor MlxOps::stack(std::span<const Tensor> parts) {
  std::vector<mx::array> arrays;
  for (const Tensor& part : parts) {
    check(part.width == parts.front().width, "stack", "widths differ");
    if (part.rows > 0) arrays.push_back(array(part));
  }
  if (arrays.empty()) return no_rows(parts.empty() ? 0 : parts.front().width);
  return tensor(mx::concatenate(std::move(arrays), 0));
}

Tensor MlxOps::concat(const Tensor& left, const Tensor& right) {
  check(left.rows == right.rows, "concat", "row counts differ");
  return tensor(mx::concatenate({array(left), array(right)}, 1));
}

Tensor MlxOps::add(const Tensor& a, const Tensor& b) {
  check(a.rows == b.rows && a.width == b.width, "add", "shapes differ");
  return tensor(mx::add(array(a), array(b)));
}

Tensor MlxOps::mix(const Tensor& a, const Tensor& b, float share) {
  check(a.rows == b.rows && a.width == b.width, "mix", "shapes differ");
  return tensor(mx::add(mx::multiply(array(a), mx::array(share)), mx::multiply(array(b), mx::array(1.0f - share))));
}

Tensor MlxOps::rms_norm(const Tensor& x, const Vector& gain, float eps) {
  check(gain.size == x.width, "rms_norm", "gain and row differ in width");
  if (x.rows == 0) return no_rows(x.width);
  return tensor(mx::fast::rms_norm(array(x), array(gain), eps));
}

Tensor MlxOps::linear(const Tensor& x, const Matrix& w) {
  check(w.in == x.width, "linear", "matrix and row differ in width");
  if (x.rows == 0) return no_rows(w.out);
  return tensor(static_cast<const on_mlx::Weights&>(*w.storage).product(array(x)));
}

Tensor MlxOps::swiglu(const Tensor& gate, const Tensor& up, float limit) {
  check(gate.rows == up.rows && gate.width == up.width, "swiglu", "shapes differ");
  return tensor(on_mlx::swiglu(array(gate), array(up), limit));
}

Tensor MlxOps::pick_runs(const Tensor& x, std::span<const int> from, int width) {
  const int runs = x.width / width;
  for (const int run : from) check(run >= 0 && run < runs, "pick_runs", "run outside the row");
  const mx::array cut = mx::reshape(array(x), {x.rows, runs, width});
  return tensor(mx::reshape(mx::take(cut, indices(from), 1), {x.rows, static_cast<int>(from.size()) * width}));
}

Tensor MlxOps::gate_runs(const Tensor& x, const Tensor& gate) {
  check(gate.rows == x.rows && gate.width > 0 && x.width % gate.width == 0, "gate_runs", "shapes differ");
  const mx::array cut = mx::reshape(array(x), {x.rows, gate.width, x.width / gate.width});
  return tensor(mx::reshape(mx::multiply(cut, mx::expand_dims(mx::sigmoid(array(gate)), 2)), {x.rows, x.width}));
}

Tensor MlxOps::from_host(int rows, int width, std::span<const float> values) {
  check(values.size() == static_cast<std::size_t>(rows) * static_cast<std::size_t>(width), "from_host",
      "size and shape differ");
  return tensor(mx::array(values.begin(), {rows, width}, mx::float32));
}

std::span<const float> MlxOps::read(const Tensor& x) {
  const auto& storage = static_cast<const on_mlx::Array&>(*x.storage);
  if (!storage.host) storage.host = mx::contiguous(storage.value);
  pending_.push_back(*storage.host);
  evaluate_pending();
  return {storage.host->data<float>(), storage.host->size()};
}

void MlxOps::evaluate_pending() {
  if (pending_.empty()) return;
  std::vector<mx::array> all;
  all.swap(pending_);  // empty again whatever evaluation throws
  mx::eval(std::move(all));
}

}  // namespace foresay
