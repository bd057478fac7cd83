#include "model/ops_mlx/kv_cache_mlx.h"

#include "base/error.h"

namespace foresay {
namespace {

/// `rows` written into `all` from position `first` on, with room made where it ends too early.
mx::array with_rows(const std::optional<mx::array>& all, const mx::array& rows, int first) {
  const int heads = rows.shape(1), last = first + rows.shape(2), dim = rows.shape(3);
  const int room = all ? all->shape(2) : 0;
  if (last <= room) return mx::slice_update(*all, rows, mx::Shape{0, 0, first, 0}, mx::Shape{1, heads, last, dim});
  const int more = (last + MlxKvCache::kStep - 1) / MlxKvCache::kStep * MlxKvCache::kStep - last;
  std::vector<mx::array> parts;
  if (first > 0) parts.push_back(mx::slice(*all, {0, 0, 0, 0}, {1, heads, first, dim}));
  parts.push_back(rows);
  if (more > 0) parts.push_back(mx::zeros({1, heads, more, dim}, mx::float32));
  return mx::concatenate(std::move(parts), 2);
}

}  // namespace

struct MlxKvCache::Snapshot final : CacheSnapshot {
  std::optional<mx::array> keys, values;
  int length = 0;
};

void MlxKvCache::append(const mx::array& keys, const mx::array& values, bool provisional) {
  if (provisional_) fail(ErrorCode::internal, "[kv cache] append before keep() settled {} provisional rows", appended_);
  keys_ = with_rows(keys_, keys, length_);
  values_ = with_rows(values_, values, length_);
  appended_ = keys.shape(2);
  length_ += appended_;
  provisional_ = provisional;
}

mx::array MlxKvCache::held(const mx::array& all) const {
  return mx::slice(all, {0, 0, 0, 0}, {1, all.shape(1), length_, all.shape(3)});
}

void MlxKvCache::keep(int n) {
  if (!can_keep(n)) fail(ErrorCode::internal, "[kv cache] keep({}) of {} appended rows", n, appended_);
  truncate(length_ - appended_ + n);
}

void MlxKvCache::truncate(int new_length) {
  if (!can_truncate(new_length)) {
    fail(ErrorCode::internal, "[kv cache] truncate({}) of {} rows", new_length, length_);
  }
  length_ = new_length;
  appended_ = 0;
  provisional_ = false;
  if (length_ == 0) keys_ = values_ = std::nullopt;
}

std::shared_ptr<const CacheSnapshot> MlxKvCache::snapshot() {
  if (provisional_) fail(ErrorCode::internal, "[kv cache] snapshot with {} provisional rows", appended_);
  auto copy = std::make_shared<Snapshot>();
  copy->keys = keys_;
  copy->values = values_;
  copy->length = length_;
  return copy;
}

void MlxKvCache::restore(const CacheSnapshot& snapshot) {
  const auto& source = dynamic_cast<const Snapshot&>(snapshot);
  keys_ = source.keys;
  values_ = source.values;
  length_ = source.length;
  appended_ = 0;
  provisional_ = false;
}

std::size_t MlxKvCache::bytes() const {
  return keys_ ? keys_->nbytes() + values_->nbytes() : 0;
}

}  // namespace foresay
