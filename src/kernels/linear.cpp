#include "kernels/linear.h"

#include <cstddef>
#include <cstdint>

#include "base/cpu_features.h"
#include "kernels/linear_variants.h"

namespace foresay {
namespace {

kernels::DotRows chosen_dot_rows() {
#if defined(__x86_64__)
  if (current_isa() == Isa::avx2) return kernels::dot_rows_avx2;
#endif
  return kernels::dot_rows_reference;
}

/// True when rows can be read where they lie.
bool holds_floats(const WeightView& w) {
  return w.type == WeightType::f32 && reinterpret_cast<std::uintptr_t>(w.data) % alignof(float) == 0;
}

}  // namespace

void linear(const float* x, int rows, const WeightView& w, float* y, int first, int last, float* scratch) {
  const auto run = chosen_dot_rows();
  const bool in_place = holds_floats(w);
  for (int n = first; n < last; ++n) {
    const float* row = scratch;
    if (in_place) {
      row = static_cast<const float*>(w.data) + static_cast<std::size_t>(n) * static_cast<std::size_t>(w.in);
    } else {
      unpack_row(w, n, scratch);
    }
    run(x, rows, row, w.in, y + n, w.out);
  }
}

void dot_rows(const float* rows, int count, const float* v, int n, float* y) {
  chosen_dot_rows()(rows, count, v, n, y, 1);
}

}  // namespace foresay
