// model/ops_mlx/recurrent_cache_mlx.h: the constant-size memory of a GatedDeltaNet layer, with a tape for drafted rows
// (MLX lane).
#pragma once

#include <mlx/mlx.h>

#include <optional>
#include <vector>

#include "model/cache/cache.h"
#include "model/cache/shapes.h"

namespace foresay {

namespace mx = mlx::core;

/// As RecurrentCache of the CPU lane: certain rows advance window and state; provisional ones leave both and go on a
/// tape, of which keep(n) marks n rows and the next pass settles them. All are arrays of MLX and stay on its device.
class MlxRecurrentCache final : public Cache {
 public:
  /// What drafted rows would do to the state.
  struct Tape {
    int rows = 0;
    mx::array conv;   ///< [rows, C]          convolution input, before the activation
    mx::array key;    ///< [rows, nk, Dk]     normalised keys
    mx::array delta;  ///< [rows, nv, Dv, 1]  beta * (v - S k)
    mx::array decay;  ///< [rows, nv, 1, 1]
  };

  explicit MlxRecurrentCache(RecurrentShape shape);

  /// Settles the tape rows that count. Throws while provisional rows wait for keep().
  void begin(int count);
  [[nodiscard]] const mx::array& window() const { return window_; }  ///< [K-1, C] oldest row first
  [[nodiscard]] const mx::array& state() const { return state_; }    ///< [1, nv, Dv, Dk]
  void commit(int count, mx::array window, mx::array state);         ///< rows have advanced both
  void record(Tape tape);                                            ///< rows are provisional; they wait for keep()
  /// What the last pass left to be evaluated.
  [[nodiscard]] std::vector<mx::array> arrays() const;

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
    return {.per_position = 0, .fixed = window_.nbytes() + state_.nbytes()};
  }

  /// One row's write: decay * state + delta keyᵀ, in two roundings. The pass and the tape both call this, so that a
  /// settled state has the bits of plain decoding.
  ///   state [1, nv, Dv, Dk] · decay [1, nv, 1, 1], delta [1, nv, Dv, 1], key [1, nv, 1, Dk]
  [[nodiscard]] static mx::array write(const mx::array& decayed, const mx::array& delta, const mx::array& key);
  /// [rows, nk, Dk] -> [rows, nv, 1, Dk]: every value head's key as a row.
  [[nodiscard]] mx::array key_rows(const mx::array& key) const;

 private:
  struct Snapshot;

  RecurrentShape shape_;
  mx::array window_, state_;
  std::optional<Tape> tape_;
  int kept_ = 0;  ///< leading tape rows that count but are not yet in window_ and state_
  int length_ = 0;
  int appended_ = 0;          ///< rows of the last append
  bool provisional_ = false;  ///< tape rows wait for keep()
};

}  // namespace foresay
