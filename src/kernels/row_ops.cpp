#include "kernels/row_ops.h"

#include <cmath>

namespace foresay {

float sigmoid(float x) {
  return 1.0f / (1.0f + std::exp(-x));
}
float softplus(float x) {
  return x > 20.0f ? x : std::log1p(std::exp(x));
}

}  // namespace foresay
