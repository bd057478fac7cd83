// AVX2: the 16 partial sums are two registers. Four rows share each load of w. Multiply and add stay apart (no FMA), so
// the bits are those of the reference.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstddef>

#include "kernels/linear_variants.h"

namespace foresay::kernels {
namespace {

#define FORESAY_AVX2 __attribute__((target("avx2")))

FORESAY_AVX2 inline float reduce(__m256 low, __m256 high, const float* x, const float* w, int rest) {
  alignas(32) float sum[16];
  _mm256_store_ps(sum, low);
  _mm256_store_ps(sum + 8, high);
  for (int lane = 0; lane < rest; ++lane) sum[lane] += x[lane] * w[lane];
  const __m256 eight = _mm256_add_ps(_mm256_load_ps(sum), _mm256_load_ps(sum + 8));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

/// kRows rows against one weight row.
template <int kRows>
FORESAY_AVX2 inline void block(const float* x, const float* w, int n, float* y, int y_stride) {
  __m256 low[kRows], high[kRows];
  for (int r = 0; r < kRows; ++r) low[r] = high[r] = _mm256_setzero_ps();
  int i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256 w0 = _mm256_loadu_ps(w + i), w1 = _mm256_loadu_ps(w + i + 8);
    for (int r = 0; r < kRows; ++r) {
      const float* row = x + static_cast<std::ptrdiff_t>(r) * n + i;
      low[r] = _mm256_add_ps(low[r], _mm256_mul_ps(_mm256_loadu_ps(row), w0));
      high[r] = _mm256_add_ps(high[r], _mm256_mul_ps(_mm256_loadu_ps(row + 8), w1));
    }
  }
  for (int r = 0; r < kRows; ++r) {
    y[static_cast<std::ptrdiff_t>(r) * y_stride] =
        reduce(low[r], high[r], x + static_cast<std::ptrdiff_t>(r) * n + i, w + i, n - i);
  }
}

}  // namespace

FORESAY_AVX2 void dot_rows_avx2(const float* x, int rows, const float* w, int n, float* y, int y_stride) {
  int r = 0;
  for (; r + 4 <= rows; r += 4) {
    block<4>(x + static_cast<std::ptrdiff_t>(r) * n, w, n, y + static_cast<std::ptrdiff_t>(r) * y_stride, y_stride);
  }
  for (; r < rows; ++r) {
    block<1>(x + static_cast<std::ptrdiff_t>(r) * n, w, n, y + static_cast<std::ptrdiff_t>(r) * y_stride, y_stride);
  }
}

}  // namespace foresay::kernels
#endif
