// The definition of correct: plain loops. 16 partial sums, element i into sum i mod 16, then added pairwise.
#include <cstddef>

#include "kernels/linear_variants.h"

namespace foresay::kernels {

void dot_rows_reference(const float* x, int rows, const float* w, int n, float* y, int y_stride) {
  for (int r = 0; r < rows; ++r, x += n) {
    float sum[16] = {};
    int i = 0;
    for (; i + 16 <= n; i += 16) {
      for (int lane = 0; lane < 16; ++lane) sum[lane] += x[i + lane] * w[i + lane];
    }
    for (int lane = 0; i < n; ++i, ++lane) sum[lane] += x[i] * w[i];
    for (int half = 8; half > 0; half /= 2) {
      for (int lane = 0; lane < half; ++lane) sum[lane] += sum[lane + half];
    }
    y[static_cast<std::ptrdiff_t>(r) * y_stride] = sum[0];
  }
}

}  // namespace foresay::kernels
