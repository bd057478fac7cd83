// model/ops_cpu/buffer_pool.h: memory for activations, used again from pass to pass.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace foresay::cpu {

/// Hands out uninitialised buffers and takes them back. Fresh memory costs a page fault per 4 KiB; a row of logits over
/// a large vocabulary is a megabyte, every pass. Any thread.
class BufferPool {
 public:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t{64}); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;

  /// A buffer of at least `bytes`, aligned to 64; `bytes` becomes its whole size.
  [[nodiscard]] Memory take(std::size_t& bytes);
  void give(Memory memory, std::size_t bytes);

 private:
  std::mutex mutex_;
  std::map<std::size_t, std::vector<Memory>> free_;  ///< by size
};

/// A buffer that goes back to its pool, which it keeps alive.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<BufferPool> pool, std::size_t bytes)
      : pool_(std::move(pool)), bytes_(bytes), memory_(pool_->take(bytes_)) {}
  Buffer(Buffer&&) = default;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() {
    if (memory_) pool_->give(std::move(memory_), bytes_);
  }
  [[nodiscard]] std::byte* data() const { return memory_.get(); }

 private:
  std::shared_ptr<BufferPool> pool_;
  std::size_t bytes_ = 0;
  BufferPool::Memory memory_;
};

}  // namespace foresay::cpu
