// model/cache/cache.h: per-layer memory of one sequence, and how it is undone.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace foresay {

/// An immutable copy of a cache, cheap to keep: attention pages are shared, recurrent state is copied.
struct CacheSnapshot {
  virtual ~CacheSnapshot() = default;
};

/// What memory a cache takes as the text grows.
struct CacheFootprint {
  std::size_t per_position = 0;  ///< bytes that every position adds
  std::size_t fixed = 0;         ///< bytes however long the text is: a recurrent state, a full window

  CacheFootprint& operator+=(const CacheFootprint& other) {
    per_position += other.per_position;
    fixed += other.fixed;
    return *this;
  }
};

/// One layer's memory. An operation appends rows; rows appended as provisional (drafted, not yet verified) wait for
/// keep(). Every undo is exact or throws ErrorCode::internal; nothing returns success without having moved. Engine
/// thread only.
class Cache {
 public:
  virtual ~Cache() = default;

  [[nodiscard]] virtual int length() const = 0;  ///< rows held, provisional ones included

  /// Whether keep(n) or truncate(new_length) would be exact; they throw where not.
  [[nodiscard]] virtual bool can_keep(int n) const = 0;
  [[nodiscard]] virtual bool can_truncate(int new_length) const = 0;

  /// Keeps the first n rows of the last append and drops the rest. 0 <= n <= rows appended.
  /// Recurrent caches can only drop rows that were appended as provisional.
  virtual void keep(int n) = 0;

  /// Drops rows behind `new_length`, where that is exact (attention). Recurrent caches throw unless nothing is to be
  /// dropped.
  virtual void truncate(int new_length) = 0;

  [[nodiscard]] virtual std::shared_ptr<const CacheSnapshot> snapshot() = 0;  ///< needs no provisional rows outstanding
  virtual void restore(const CacheSnapshot& snapshot) = 0;

  [[nodiscard]] virtual std::size_t bytes() const = 0;  ///< held now
  [[nodiscard]] virtual CacheFootprint footprint() const = 0;
};

/// All layers' caches of one sequence: equal lengths, moved together.
class CacheSet {
 public:
  explicit CacheSet(std::vector<std::unique_ptr<Cache>> layers) : layers_(std::move(layers)) {}

  [[nodiscard]] int length() const { return layers_.empty() ? 0 : layers_.front()->length(); }
  [[nodiscard]] Cache& layer(int index) { return *layers_.at(static_cast<std::size_t>(index)); }

  /// As Cache, over all layers: either every layer moves or none does.
  void keep(int n);
  void truncate(int new_length);

  using Snapshot = std::vector<std::shared_ptr<const CacheSnapshot>>;
  [[nodiscard]] Snapshot snapshot() {
    Snapshot all;
    for (auto& layer : layers_) all.push_back(layer->snapshot());
    return all;
  }
  void restore(const Snapshot& all) {
    for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i]->restore(*all.at(i));
  }
  [[nodiscard]] std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& layer : layers_) sum += layer->bytes();
    return sum;
  }
  [[nodiscard]] CacheFootprint footprint() const {
    CacheFootprint sum;
    for (const auto& layer : layers_) sum += layer->footprint();
    return sum;
  }

 private:
  std::vector<std::unique_ptr<Cache>> layers_;
};

}  // namespace foresay
