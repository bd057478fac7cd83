// model/tensor.h: handles to activations and parameters. What they hold belongs to the lane that made them.
#pragma once

#include <memory>
#include <numeric>
#include <vector>

namespace foresay {

/// Base of whatever a lane keeps behind a handle: a float buffer on the CPU lane.
struct Storage {
  virtual ~Storage() = default;
};

/// Activations [rows, width], float32 towards the model code. Immutable once made; copying copies the handle.
struct Tensor {
  int rows = 0, width = 0;
  std::shared_ptr<const Storage> storage;
};

/// A weight matrix [out, in], raw or packed.
struct Matrix {
  int out = 0, in = 0;
  std::shared_ptr<const Storage> storage;
};

/// The matrices [out, in] of a layer's experts, one shape for all.
struct Experts {
  int count = 0, out = 0, in = 0;
  std::shared_ptr<const Storage> storage;
};

/// A float32 parameter vector: a norm's gain, a convolution's taps.
struct Vector {
  int size = 0;
  std::shared_ptr<const Storage> storage;
};

/// Row numbers first, first + 1, ..., first + count - 1.
[[nodiscard]] inline std::vector<int> row_range(int first, int count) {
  std::vector<int> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

}  // namespace foresay
