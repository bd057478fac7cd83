#include "model/ops_mlx/kv_cache_mlx.h"

#include <algorithm>

#include "base/error.h"

namespace foresay {
namespace {

/// Rows [first, last) of `all`, where there are any, then `rows`, then zeros up to `room` rows.
mx::array joined(const std::optional<mx::array>& all, int first, int last, const mx::array& rows, int room) {
  const int heads = rows.shape(1), dim = rows.shape(3), more = room - (last - first) - rows.shape(2);
  std::vector<mx::array> parts;
  if (last > first) parts.push_back(mx::slice(*all, {0, 0, first, 0}, {1, heads, last, dim}));
  parts.push_back(rows);
  if (more > 0) parts.push_back(mx::zeros({1, heads, more, dim}, mx::float32));
  return mx::concatenate(std::move(parts), 2);
}

}  // namespace

struct MlxKvCache::Snapshot final : CacheSnapshot {
  std::optional<mx::array> keys, values;
  int start = 0, length = 0;
};

void MlxKvCache::append(const mx::array& keys, const mx::array& values, bool provisional) {
  if (provisional_) fail(ErrorCode::internal, "[kv cache] append before keep() settled {} provisional rows", appended_);
  appended_ = keys.shape(2);
  const int first = length_ - start_, last = first + appended_;
  if (keys_ && last <= keys_->shape(2)) {
    const auto with = [&](const mx::array& all, const mx::array& rows) {
      return mx::slice_update(all, rows, mx::Shape{0, 0, first, 0}, mx::Shape{1, rows.shape(1), last, rows.shape(3)});
    };
    keys_ = with(*keys_, keys);
    values_ = with(*values_, values);
  } else {
    const int live = std::max(start_, shape_.first_seen(std::max(0, length_ - kSlack)));
    // Under a window the length says nothing about the room, so a step more is made: else every append might move all.
    const int room = (length_ - live + appended_ + kStep - 1) / kStep * kStep + (shape_.window > 0 ? kStep : 0);
    keys_ = joined(keys_, live - start_, first, keys, room);
    values_ = joined(values_, live - start_, first, values, room);
    start_ = live;
  }
  length_ += appended_;
  provisional_ = provisional;
}

mx::array MlxKvCache::held(const mx::array& all, int from) const {
  return mx::slice(all, {0, 0, from - start_, 0}, {1, all.shape(1), length_ - start_, all.shape(3)});
}

void MlxKvCache::keep(int n) {
  if (!can_keep(n)) fail(ErrorCode::internal, "[kv cache] keep({}) of {} appended rows", n, appended_);
  truncate(length_ - appended_ + n);
}

void MlxKvCache::truncate(int new_length) {
  if (!can_truncate(new_length)) {
    fail(ErrorCode::internal, "[kv cache] truncate({}) of {} rows; those from position {} on are left", new_length,
        length_, start_);
  }
  length_ = new_length;
  appended_ = 0;
  provisional_ = false;
  if (length_ > 0) return;
  keys_ = values_ = std::nullopt;
  start_ = 0;
}

std::shared_ptr<const CacheSnapshot> MlxKvCache::snapshot() {
  if (provisional_) fail(ErrorCode::internal, "[kv cache] snapshot with {} provisional rows", appended_);
  auto copy = std::make_shared<Snapshot>();
  copy->keys = keys_;
  copy->values = values_;
  copy->start = start_;
  copy->length = length_;
  return copy;
}

void MlxKvCache::restore(const CacheSnapshot& snapshot) {
  const auto& source = dynamic_cast<const Snapshot&>(snapshot);
  keys_ = source.keys;
  values_ = source.values;
  start_ = source.start;
  length_ = source.length;
  appended_ = 0;
  provisional_ = false;
}

std::size_t MlxKvCache::bytes() const {
  return keys_ ? keys_->nbytes() + values_->nbytes() : 0;
}

CacheFootprint MlxKvCache::footprint() const {
  const auto row = static_cast<std::size_t>(shape_.kv_heads) *
                   static_cast<std::size_t>(shape_.key_dim + shape_.value_dim) * sizeof(float);
  if (shape_.window == 0) return {.per_position = row, .fixed = 0};
  return {.per_position = 0, .fixed = static_cast<std::size_t>(shape_.window + kSlack + kStep) * row};
}

}  // namespace foresay
