// model/cache/recurrent_cache.h: the constant-size memory of a GatedDeltaNet layer, with a tape for drafted rows (CPU
// lane).
#pragma once

#include <vector>

#include "kernels/gated_delta.h"
#include "model/cache/cache.h"
#include "model/cache/shapes.h"

namespace foresay {

/// Convolution window and recurrent state. Prompt rows advance both at once. Provisional rows do not: what they would
/// change is kept on a tape (convolution row, k, d, g); keep(n) marks n of them, and the next pass advances the state
/// over those before its own rows. That is the arithmetic of plain decoding in its own order, so an undo leaves the
/// very bits. The operation that walks the rows (ops_cpu) reads and writes the members; everyone else uses Cache.
class RecurrentCache final : public Cache {
 public:
  /// What drafted rows would do to the state.
  struct Tape {
    int rows = 0;
    std::vector<float> conv;   ///< [rows, C]        convolution input, before the activation
    std::vector<float> key;    ///< [rows, nk * Dk]  normalised keys
    std::vector<float> delta;  ///< [rows, nv * Dv]  beta * (v - S k)
    std::vector<float> decay;  ///< [rows, nv]
  };

  explicit RecurrentCache(RecurrentShape shape);

  [[nodiscard]] int length() const override { return length_; }
  [[nodiscard]] bool can_keep(int n) const override {
    return n >= 0 && n <= appended_ && (provisional_ || n == appended_);
  }
  [[nodiscard]] bool can_truncate(int new_length) const override { return new_length == length_ && !provisional_; }
  void keep(int n) override;
  void truncate(int new_length) override;
  [[nodiscard]] std::shared_ptr<const CacheSnapshot> snapshot() override;
  void restore(const CacheSnapshot& snapshot) override;
  [[nodiscard]] std::size_t bytes() const override;
  [[nodiscard]] CacheFootprint footprint() const override {
    return {.per_position = 0, .fixed = (window_.size() + state_.size()) * sizeof(float)};
  }

  [[nodiscard]] const RecurrentShape& shape() const { return shape_; }

  // For the operation: begin(), then per head (any thread, a head and its channels each) gated_delta over past() and
  // its rows and slide_window over settled_rows() and its rows, then commit() or record().
  void begin(int count) const;                              ///< throws while provisional rows wait for keep()
  [[nodiscard]] RecordedRows past(int value_head) const;    ///< kept tape rows that the state has not seen yet
  void settle_window(int first, int last);                  ///< moves the window over them, channels [first, last)
  [[nodiscard]] float* window() { return window_.data(); }  ///< [K-1, C] oldest row first
  [[nodiscard]] float* state(int value_head);               ///< [Dv, Dk]
  void commit(int count);                                   ///< rows advanced window and state themselves
  void record(Tape tape);                                   ///< rows are provisional; they wait for keep()

 private:
  struct Snapshot;

  RecurrentShape shape_;
  std::vector<float> window_;  ///< [K-1, C]
  std::vector<float> state_;   ///< [nv, Dv, Dk]
  Tape tape_;
  int kept_ = 0;  ///< leading tape rows that count but are not yet in window_ and state_
  int length_ = 0;
  int appended_ = 0;          ///< rows of the last append
  bool provisional_ = false;  ///< tape rows wait for keep()
};

}  // namespace foresay
