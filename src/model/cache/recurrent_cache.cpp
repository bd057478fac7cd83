#include "model/cache/recurrent_cache.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/gated_delta.h"

namespace foresay {
namespace {

std::size_t product(int a, int b, int c = 1) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}

}  // namespace

struct RecurrentCache::Snapshot final : CacheSnapshot {
  std::vector<float> window, state;
  int length = 0;
};

RecurrentCache::RecurrentCache(RecurrentShape shape)
    : shape_(shape),
      window_(product(shape.conv_kernel - 1, shape.conv_channels)),
      state_(product(shape.value_heads, shape.value_dim, shape.key_dim)) {}

void RecurrentCache::keep(int n) {
  if (!can_keep(n)) {
    fail(ErrorCode::internal, "[recurrent cache] keep({}) of {} appended rows{}", n, appended_,
        provisional_ ? "" : " that have already advanced the state");
  }
  length_ -= appended_ - n;
  if (provisional_) kept_ = n;
  appended_ = 0;
  provisional_ = false;
}

void RecurrentCache::truncate(int new_length) {
  if (!can_truncate(new_length)) {
    fail(ErrorCode::internal, "[recurrent cache] truncate({}) of {} rows: a recurrent state cannot go back", new_length,
        length_);
  }
}

std::shared_ptr<const CacheSnapshot> RecurrentCache::snapshot() {
  begin(0);
  settle_window();
  for (int head = 0; head < shape_.value_heads; ++head) settle_state(head);
  kept_ = 0;
  auto copy = std::make_shared<Snapshot>();
  copy->window = window_;
  copy->state = state_;
  copy->length = length_;
  return copy;
}

void RecurrentCache::restore(const CacheSnapshot& snapshot) {
  const auto& source = dynamic_cast<const Snapshot&>(snapshot);
  window_ = source.window;
  state_ = source.state;
  length_ = source.length;
  kept_ = appended_ = 0;
  provisional_ = false;
}

std::size_t RecurrentCache::bytes() const {
  return (window_.size() + state_.size() + tape_.conv.size() + tape_.key.size() + tape_.delta.size() +
             tape_.decay.size()) *
         sizeof(float);
}

float* RecurrentCache::state(int value_head) {
  return state_.data() + product(value_head, shape_.value_dim, shape_.key_dim);
}

void RecurrentCache::begin(int count) const {
  if (provisional_) {
    fail(ErrorCode::internal, "[recurrent cache] {} more rows before keep() settled {}", count, appended_);
  }
}

void RecurrentCache::settle_window() {
  slide_window(window_.data(), tape_.conv.data(), kept_, shape_.conv_channels, shape_.conv_kernel);
}

void RecurrentCache::settle_state(int value_head) {
  const int key_head = value_head / (shape_.value_heads / shape_.key_heads);
  for (int row = 0; row < kept_; ++row) {
    gated_delta_advance(state(value_head), shape_.value_dim, shape_.key_dim,
        tape_.decay[product(row, shape_.value_heads) + static_cast<std::size_t>(value_head)],
        tape_.delta.data() + product(row, shape_.value_heads, shape_.value_dim) + product(value_head, shape_.value_dim),
        tape_.key.data() + product(row, shape_.key_heads, shape_.key_dim) + product(key_head, shape_.key_dim));
  }
}

void RecurrentCache::commit(int count) {
  kept_ = 0;
  length_ += count;
  appended_ = count;
  provisional_ = false;
}

void RecurrentCache::record(Tape tape) {
  tape_ = std::move(tape);
  kept_ = 0;
  length_ += tape_.rows;
  appended_ = tape_.rows;
  provisional_ = true;
}

}  // namespace foresay
