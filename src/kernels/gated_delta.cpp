#include "kernels/gated_delta.h"

#include <cstring>

namespace foresay {

void slide_window(float* window, const float* rows, int count, int channels, int kernel, int first, int last) {
  const int past = kernel - 1;
  if (count == 0 || past == 0) return;
  const int from_rows = count < past ? count : past, stay = past - from_rows;
  const std::size_t bytes = static_cast<std::size_t>(last - first) * sizeof(float);
  const auto row = [&](const float* base, int i) { return base + static_cast<std::ptrdiff_t>(i) * channels + first; };
  for (int i = 0; i < stay; ++i) std::memcpy(window + (row(window, i) - window), row(window, i + from_rows), bytes);
  for (int i = 0; i < from_rows; ++i) {
    std::memcpy(window + (row(window, stay + i) - window), row(rows, count - from_rows + i), bytes);
  }
}

}  // namespace foresay
