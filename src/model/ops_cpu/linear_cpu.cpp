// CPU lane: products with weight matrices, several per turn of the pool.
#include <algorithm>

#include "base/error.h"
#include "kernels/linear.h"
#include "kernels/row_ops.h"
#include "model/ops_cpu/ops_cpu.h"
#include "model/vocabulary_subset.h"

namespace foresay {
namespace {

constexpr int kTile = kInt8Tile;             // weight rows: what kernels take at a time
constexpr std::size_t kPartBytes = 1 << 16;  // of weights per part: long enough to stream, short enough to share out

/// Tiles per part, so that every thread gets several and no part is longer than kPartBytes.
int tiles_per_part(int tiles, std::size_t row_bytes, int threads) {
  const auto most = static_cast<int>(std::max<std::size_t>(1, kPartBytes / (row_bytes * kTile)));
  return std::clamp(tiles / (6 * threads), 1, most);
}

std::size_t row_bytes(const WeightView& w) {
  const int bits = is_packed(w.type) ? w.bits : w.type == WeightType::f32 ? 32 : 16;
  return std::max<std::size_t>(1, static_cast<std::size_t>(w.in) * static_cast<std::size_t>(bits) / 8);
}

int tiles_of(int outputs) {
  return (outputs + kTile - 1) / kTile;
}

}  // namespace

const Int8Rows& CpuOps::quantised(const Tensor& x, Int8Order order) {
  auto& slot = cpu::floats(x).quantised[static_cast<std::size_t>(order)];
  if (slot) return slot->rows;
  const auto rows = static_cast<std::size_t>(x.rows);
  const std::size_t codes = static_cast<std::size_t>(x.width), scales = int8_blocks(x.width), sums = int8_sums(x.width);
  slot.emplace(cpu::QuantisedRows{cpu::Buffer(buffers_, rows * (codes + (scales + sums) * sizeof(float))), {}});
  std::byte* memory = slot->memory.data();
  auto* first_scale = reinterpret_cast<float*>(memory + rows * codes);
  auto* first_code = reinterpret_cast<std::int8_t*>(memory);
  float* first_sum = first_scale + rows * scales;
  slot->rows = {order, x.rows, x.width, first_code, first_scale, first_sum};
  for_rows(x.rows, [&](int r) {
    const auto at = static_cast<std::size_t>(r);
    quantise_row(
        cpu::row(x, r), x.width, order, first_code + at * codes, first_scale + at * scales, first_sum + at * sums);
  });
  return slot->rows;
}

/// Makes the int8 form of x where the matrix will read it, before threads share it.
void CpuOps::prepare(const Tensor& x, const WeightView& w) {
  cpu::check(w.in == x.width, "linear", "matrix and row differ in width");
  if (reads_int8(w)) (void)quantised(x, int8_order(w));
}

void CpuOps::multiply_range(const Tensor& x, const Product& product, int first, int last) const {
  const WeightView& w = *product.w;
  const int rows = product.rows < 0 ? x.rows : product.rows;
  if (reads_int8(w)) {
    thread_local std::vector<std::byte> scratch;
    if (scratch.size() < int8_scratch(w))
      scratch.resize(int8_scratch(w));  // never smaller: growing again would zero it
    const auto& slot = cpu::floats(x).quantised[static_cast<std::size_t>(int8_order(w))];
    linear_int8(slot->rows.part(product.first_row, rows), w, product.which, product.out, first, last, scratch.data());
  } else {
    thread_local std::vector<float> scratch;
    scratch.resize(static_cast<std::size_t>(w.in) * kLinearTile);
    if (product.which == nullptr) {
      foresay::linear(cpu::row(x, product.first_row), rows, w, product.out, first, last, scratch.data());
      return;
    }
    for (int n = first; n < last; ++n) {
      foresay::linear(cpu::row(x, product.first_row), rows, rows_of(w, product.which[n], w.out), product.out + n, 0, 1,
          scratch.data());
    }
  }
}

/// Matrices one after another in one turn of the pool.
void CpuOps::multiply(const Tensor& x, std::span<const Product> products) {
  int tiles = 0;
  for (const Product& product : products) {
    prepare(x, *product.w);
    tiles += tiles_of(product.outputs);
  }
  if (x.rows == 0) return;
  pool_.parallel_for(
      tiles, tiles_per_part(tiles, row_bytes(*products.front().w), pool_.threads()), [&](int first, int last) {
        for (const Product& product : products) {
          if (last <= 0) break;
          const int own = tiles_of(product.outputs);
          if (first < own) {
            multiply_range(x, product, std::max(first, 0) * kTile, std::min(last * kTile, product.outputs));
          }
          first -= own;
          last -= own;
        }
      });
}

/// Matrices of one shape side by side: the same outputs of each, then `finish` for those.
void CpuOps::multiply_together(const Tensor& x, std::span<const Product> products, const Finish& finish) {
  const WeightView& shape = *products.front().w;
  for (const Product& product : products) {
    prepare(x, *product.w);
    cpu::check(product.w->out == shape.out, "linear", "matrices differ in their outputs");
  }
  if (x.rows == 0) return;
  const int tiles = tiles_of(shape.out);
  pool_.parallel_for(tiles, tiles_per_part(tiles, row_bytes(shape), pool_.threads()), [&](int begin, int end) {
    const int first = begin * kTile, last = std::min(end * kTile, shape.out);
    for (const Product& product : products) multiply_range(x, product, first, last);
    finish(first, last);
  });
}

Tensor CpuOps::linear(const Tensor& x, const Matrix& w) {
  const ProfileScope timed(profile(), "linear");
  cpu::Builder out = make(x.rows, w.out);
  const Product product{&cpu::view(w), out.row(0)};
  multiply(x, {&product, 1});
  return std::move(out).done();
}

std::vector<Tensor> CpuOps::linears(const Tensor& x, std::span<const Matrix* const> ws) {
  const ProfileScope timed(profile(), "linears");
  std::vector<cpu::Builder> outs;
  std::vector<Product> products;
  for (const Matrix* w : ws) outs.push_back(make(x.rows, w->out));
  for (std::size_t i = 0; i < ws.size(); ++i) products.push_back({&cpu::view(*ws[i]), outs[i].row(0)});
  multiply(x, products);
  std::vector<Tensor> tensors;
  for (cpu::Builder& out : outs) tensors.push_back(std::move(out).done());
  return tensors;
}

Tensor CpuOps::linear_subset(const Tensor& x, const Matrix& w, const VocabularySubset& rows) {
  const ProfileScope timed(profile(), "linear_subset");
  cpu::check(rows.low <= w.out && (rows.extra.empty() || rows.extra.back() < w.out), "linear_subset",
      "a row is outside the matrix");
  cpu::Builder out = make(x.rows, rows.size());
  const WeightView all = rows_of(cpu::view(w), 0, rows.size());  // outputs lie as far apart as there are chosen rows
  const int extra = static_cast<int>(rows.extra.size());
  const Product products[] = {{&all, out.row(0), rows.low}, {&all, out.row(0) + rows.low, extra, rows.extra.data()}};
  multiply(x, products);
  return std::move(out).done();
}

Tensor CpuOps::linear_add(const Tensor& x, const Matrix& w, const Tensor& residual) {
  const ProfileScope timed(profile(), "linear_add");
  cpu::check(residual.rows == x.rows && residual.width == w.out, "linear_add", "residual has the wrong shape");
  cpu::Builder out = make(x.rows, w.out);
  const Product product{&cpu::view(w), out.row(0)};
  multiply_together(x, {&product, 1}, [&](int first, int last) {
    for (int r = 0; r < x.rows; ++r) {
      float* y = out.row(r) + first;
      add_row(cpu::row(residual, r) + first, y, last - first, y);
    }
  });
  return std::move(out).done();
}

Tensor CpuOps::gated_linear(const Tensor& x, const Matrix& gate, const Matrix& up, float limit) {
  const ProfileScope timed(profile(), "gated_linear");
  cpu::Builder g = make(x.rows, gate.out), u = make(x.rows, up.out);
  const Product products[] = {{&cpu::view(gate), g.row(0)}, {&cpu::view(up), u.row(0)}};
  multiply_together(x, products, [&](int first, int last) {
    for (int r = 0; r < x.rows; ++r) {
      swiglu_row(g.row(r) + first, u.row(r) + first, limit, last - first, g.row(r) + first);
    }
  });
  return std::move(g).done();
}

}  // namespace foresay
