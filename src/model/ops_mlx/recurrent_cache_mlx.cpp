#include "model/ops_mlx/recurrent_cache_mlx.h"

#include "base/error.h"
#include "model/ops_mlx/ops_mlx.h"

namespace foresay {

struct MlxRecurrentCache::Snapshot final : CacheSnapshot {
  Snapshot(mx::array the_window, mx::array the_state, int the_length)
      : window(std::move(the_window)), state(std::move(the_state)), length(the_length) {}
  mx::array window, state;
  int length;
};

MlxRecurrentCache::MlxRecurrentCache(RecurrentShape shape)
    : shape_(shape),
      window_(mx::zeros({shape.conv_kernel - 1, shape.conv_channels}, mx::float32)),
      state_(mx::zeros({1, shape.value_heads, shape.value_dim, shape.key_dim}, mx::float32)) {}

void MlxRecurrentCache::begin(int count) {
  if (provisional_) {
    fail(ErrorCode::internal, "[recurrent cache] {} more rows before keep() settled {}", count, appended_);
  }
  if (kept_ > 0) {
    const mx::array all = mx::concatenate({window_, on_mlx::rows(tape_->conv, 0, kept_)}, 0);
    window_ = on_mlx::rows(all, kept_, shape_.conv_kernel - 1);
    const mx::array keys = key_rows(tape_->key);
    for (int row = 0; row < kept_; ++row) {
      state_ = write(mx::multiply(state_, on_mlx::rows(tape_->decay, row, 1)), on_mlx::rows(tape_->delta, row, 1),
          on_mlx::rows(keys, row, 1));
    }
  }
  kept_ = 0;
  tape_.reset();
}

mx::array MlxRecurrentCache::write(const mx::array& decayed, const mx::array& delta, const mx::array& key) {
  return mx::add(decayed, mx::multiply(delta, key));
}

mx::array MlxRecurrentCache::key_rows(const mx::array& key) const {
  const int rows = key.shape(0), share = shape_.value_heads / shape_.key_heads;  // value heads per key head
  const mx::array spread = mx::broadcast_to(mx::expand_dims(key, 2), {rows, shape_.key_heads, share, shape_.key_dim});
  return mx::reshape(spread, {rows, shape_.value_heads, 1, shape_.key_dim});
}

void MlxRecurrentCache::commit(int count, mx::array window, mx::array state) {
  window_ = std::move(window);
  state_ = std::move(state);
  length_ += count;
  appended_ = count;
  provisional_ = false;
}

void MlxRecurrentCache::record(Tape tape) {
  tape_ = std::move(tape);
  kept_ = 0;
  length_ += tape_->rows;
  appended_ = tape_->rows;
  provisional_ = true;
}

std::vector<mx::array> MlxRecurrentCache::arrays() const {
  std::vector<mx::array> all = {window_, state_};
  if (tape_) all.insert(all.end(), {tape_->conv, tape_->key, tape_->delta, tape_->decay});
  return all;
}

void MlxRecurrentCache::keep(int n) {
  if (!can_keep(n)) {
    fail(ErrorCode::internal, "[recurrent cache] keep({}) of {} appended rows{}", n, appended_,
        provisional_ ? "" : " that have already advanced the state");
  }
  length_ -= appended_ - n;
  if (provisional_) kept_ = n;
  appended_ = 0;
  provisional_ = false;
}

void MlxRecurrentCache::truncate(int new_length) {
  if (!can_truncate(new_length)) {
    fail(ErrorCode::internal, "[recurrent cache] truncate({}) of {} rows: a recurrent state cannot go back", new_length,
        length_);
  }
}

std::shared_ptr<const CacheSnapshot> MlxRecurrentCache::snapshot() {
  begin(0);
  return std::make_shared<Snapshot>(window_, state_, length_);
}

void MlxRecurrentCache::restore(const CacheSnapshot& snapshot) {
  const auto& source = dynamic_cast<const Snapshot&>(snapshot);
  window_ = source.window;
  state_ = source.state;
  length_ = source.length;
  kept_ = appended_ = 0;
  provisional_ = false;
  tape_.reset();
}

std::size_t MlxRecurrentCache::bytes() const {
  std::size_t sum = 0;
  for (const mx::array& array : arrays()) sum += array.nbytes();
  return sum;
}

}  // namespace foresay
