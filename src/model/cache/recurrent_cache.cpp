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
  settle_window(0, shape_.conv_channels);
  for (int head = 0; head < shape_.value_heads; ++head) {
    gated_delta(state(head), shape_.value_dim, shape_.key_dim, past(head), {}, /*keep=*/true);
  }
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

void RecurrentCache::settle_window(int first, int last) {
  slide_window(window_.data(), tape_.conv.data(), kept_, shape_.conv_channels, shape_.conv_kernel, first, last);
}

RecordedRows RecurrentCache::past(int value_head) const {
  const int key_head = value_head / (shape_.value_heads / shape_.key_heads);
  return {.count = kept_,
      .key = tape_.key.data() + product(key_head, shape_.key_dim),
      .delta = tape_.delta.data() + product(value_head, shape_.value_dim),
      .decay = tape_.decay.data() + value_head,
      .key_stride = shape_.key_heads * shape_.key_dim,
      .delta_stride = shape_.value_heads * shape_.value_dim,
      .decay_stride = shape_.value_heads};
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
