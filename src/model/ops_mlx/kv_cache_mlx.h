// model/ops_mlx/kv_cache_mlx.h: keys and values of softmax attention as contiguous arrays (MLX lane).
#pragma once

#include <mlx/mlx.h>

#include <optional>

#include "model/cache/cache.h"
#include "model/cache/shapes.h"

namespace foresay {

namespace mx = mlx::core;

/// Two arrays that grow in steps. An append makes new arrays from the old ones and the rows; MLX writes in place where
/// nobody else holds the old ones, and copies otherwise. So undo is a length, and a snapshot is two handles.
///
/// With a window, an append that finds no room leaves behind what no row from kSlack positions before it onwards can
/// see: keep() is always exact, truncate() over kSlack rows or more, and the room is bounded.
class MlxKvCache final : public Cache {
 public:
  static constexpr int kStep = 256;  ///< positions that room is made for at once
  static constexpr int kSlack = 64;  ///< rows before an append that can still be taken back under a window

  explicit MlxKvCache(KvShape shape) : shape_(shape) {}

  /// Appends rows behind length().
  ///   keys    [1, Hkv, count, key_dim], after norm and rotation
  ///   values  [1, Hkv, count, value_dim]
  void append(const mx::array& keys, const mx::array& values, bool provisional);
  /// From position `from`, at least first_held(), to the end.
  [[nodiscard]] mx::array keys(int from) const { return held(*keys_, from); }  ///< [1, Hkv, length - from, key_dim]
  [[nodiscard]] mx::array values(int from) const {
    return held(*values_, from);
  }  ///< [1, Hkv, length - from, value_dim]
  [[nodiscard]] int first_held() const { return start_; }
  [[nodiscard]] const KvShape& shape() const { return shape_; }
  /// What the last append left to be evaluated.
  [[nodiscard]] std::vector<mx::array> arrays() const { return {*keys_, *values_}; }

  [[nodiscard]] int length() const override { return length_; }
  [[nodiscard]] bool can_keep(int n) const override { return n >= 0 && n <= appended_; }
  [[nodiscard]] bool can_truncate(int new_length) const override {
    return new_length >= 0 && new_length <= length_ && (new_length == 0 || shape_.first_seen(new_length) >= start_);
  }
  void keep(int n) override;
  void truncate(int new_length) override;
  [[nodiscard]] std::shared_ptr<const CacheSnapshot> snapshot() override;
  void restore(const CacheSnapshot& snapshot) override;
  [[nodiscard]] std::size_t bytes() const override;
  [[nodiscard]] CacheFootprint footprint() const override;

 private:
  struct Snapshot;
  [[nodiscard]] mx::array held(const mx::array& all, int from) const;

  KvShape shape_;
  std::optional<mx::array> keys_, values_;  ///< [1, Hkv, room, dim]; none before the first append
  int start_ = 0;                           ///< position of the arrays' first row
  int length_ = 0;
  int appended_ = 0;          ///< rows of the last append
  bool provisional_ = false;  ///< the last append waits for keep()
};

}  // namespace foresay
