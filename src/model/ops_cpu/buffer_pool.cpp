#include "model/ops_cpu/buffer_pool.h"

#include <bit>

namespace foresay::cpu {
namespace {

constexpr std::size_t kSmallest = 4096;
constexpr std::size_t kMostKept = std::size_t{32} << 20;  // larger ones are rare: logits of a whole prompt

}  // namespace

BufferPool::Memory BufferPool::take(std::size_t& bytes) {
  // Four sizes per power of two, so that passes of nearly the same shape share buffers.
  const std::size_t wanted = bytes < kSmallest ? kSmallest : bytes;
  const std::size_t step = std::bit_floor(wanted) / 4;
  bytes = (wanted + step - 1) / step * step;
  {
    const std::lock_guard lock(mutex_);
    auto& list = free_[bytes];
    if (!list.empty()) {
      Memory memory = std::move(list.back());
      list.pop_back();
      return memory;
    }
  }
  return Memory(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{64})));
}

void BufferPool::give(Memory memory, std::size_t bytes) {
  if (bytes > kMostKept) return;
  const std::lock_guard lock(mutex_);
  free_[bytes].push_back(std::move(memory));
}

}  // namespace foresay::cpu
