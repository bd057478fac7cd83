// decode/draft/hidden_queue.h: hidden states that wait to be read by a layer of a head.
#pragma once

#include <utility>
#include <vector>

#include "model/ops.h"
#include "model/tensor.h"

namespace foresay {

/// Rows that wait are merged into the layer's next draft step. A prompt's are too many for that: where more than these
/// wait, they are read at once, for keys and values.
inline constexpr int kMostWaiting = 16;

/// In order of position. Copies share the rows.
class HiddenQueue {
 public:
  [[nodiscard]] int rows() const { return rows_; }

  void push(Tensor hidden) {  ///< [n, D], n >= 0
    if (hidden.rows == 0) return;
    rows_ += hidden.rows;
    parts_.push_back(std::move(hidden));
  }

  /// Everything that waits, [rows(), D]; nothing waits afterwards.
  [[nodiscard]] Tensor take(Ops& ops) {
    Tensor all = parts_.size() == 1 ? std::move(parts_.front()) : ops.stack(parts_);
    parts_.clear();
    rows_ = 0;
    return all;
  }

 private:
  std::vector<Tensor> parts_;
  int rows_ = 0;
};

}  // namespace foresay
