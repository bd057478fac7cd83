#include "kernels/row_ops.h"

#include <cmath>

namespace foresay {

void rms_norm_row(const float* x, const float* gain, float eps, int n, float* y) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i] * x[i];
  const float scale = 1.0f / std::sqrt(sum / static_cast<float>(n) + eps);
  for (int i = 0; i < n; ++i) y[i] = x[i] * scale * gain[i];
}

void l2_norm_row(const float* x, float eps, float scale, int n, float* y) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i] * x[i];
  const float factor = scale / std::sqrt(sum + eps);
  for (int i = 0; i < n; ++i) y[i] = x[i] * factor;
}

void rope_row(float* x, const float* cosines, const float* sines, int pairs) {
  for (int j = 0; j < pairs; ++j) {
    const float a = x[j], b = x[j + pairs];
    x[j] = a * cosines[j] - b * sines[j];
    x[j + pairs] = b * cosines[j] + a * sines[j];
  }
}

float sigmoid(float x) {
  return 1.0f / (1.0f + std::exp(-x));
}
float silu(float x) {
  return x * sigmoid(x);
}
float softplus(float x) {
  return x > 20.0f ? x : std::log1p(std::exp(x));
}

}  // namespace foresay
