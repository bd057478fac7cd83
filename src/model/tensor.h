// model/tensor.h: handles to activations and parameters. What they hold belongs to the lane that made them.
#pragma once

#include <memory>

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

/// A float32 parameter vector: a norm's gain, a convolution's taps.
struct Vector {
  int size = 0;
  std::shared_ptr<const Storage> storage;
};

}  // namespace foresay
