// model/cache/paged_kv_cache.h: keys and values of softmax attention, in shared pages (CPU lane).
#pragma once

#include <memory>
#include <vector>

#include "kernels/attention.h"
#include "model/cache/cache.h"
#include "model/cache/shapes.h"

namespace foresay {

/// Reference-counted pages aligned to absolute positions. A page is also the block of the attention reduction, so the
/// order of sums never depends on depth, chunk or batch. Undo is a length. A snapshot shares pages; whoever appends to
/// a shared, partly filled page copies it first.
///
/// With a window, pages lie where they would lie without one and are never written over: an append frees those that no
/// row from kSlack positions before it onwards can see. So keep() is always exact, and truncate() over kSlack rows or
/// more.
class PagedKvCache final : public Cache {
 public:
  static constexpr int kPage = 64;      ///< positions per page
  static constexpr int kSlack = kPage;  ///< rows before an append that can still be taken back under a window

  struct Page {
    std::vector<std::byte> keys;    ///< [Hkv, kPage, key_dim] of type(), after norm and RoPE
    std::vector<std::byte> values;  ///< [Hkv, kPage, value_dim]
  };

  explicit PagedKvCache(KvShape shape, KvType type = KvType::f32) : shape_(shape), type_(type) {}

  /// Makes room for `count` rows and returns the position of the first. The caller writes them.
  int append(int count, bool provisional);
  void write(int position, int head, const float* key, const float* value);  ///< any thread, a position and head each
  /// `count` positions of one head within a page, from `position` on.
  [[nodiscard]] KvBlock block(int position, int head, int count) const;
  [[nodiscard]] KvType type() const { return type_; }
  [[nodiscard]] const std::vector<std::shared_ptr<Page>>& pages() const { return pages_; }  ///< the live ones, in order
  [[nodiscard]] const KvShape& shape() const { return shape_; }

  [[nodiscard]] int length() const override { return length_; }
  [[nodiscard]] bool can_keep(int n) const override { return n >= 0 && n <= appended_; }
  [[nodiscard]] bool can_truncate(int new_length) const override;
  void keep(int n) override;
  void truncate(int new_length) override;
  [[nodiscard]] std::shared_ptr<const CacheSnapshot> snapshot() override;
  void restore(const CacheSnapshot& snapshot) override;
  [[nodiscard]] std::size_t bytes() const override;
  [[nodiscard]] CacheFootprint footprint() const override;

 private:
  struct Snapshot;
  [[nodiscard]] std::shared_ptr<Page> new_page() const;
  [[nodiscard]] std::size_t row_bytes() const;  ///< of a position
  [[nodiscard]] std::size_t element() const { return type_ == KvType::f32 ? sizeof(float) : 2; }
  [[nodiscard]] std::pair<std::byte*, std::byte*> at(int position, int head) const;

  KvShape shape_;
  KvType type_;
  std::vector<std::shared_ptr<Page>> pages_;
  int first_page_ = 0;  ///< number of pages_.front(): the pages before it are freed
  int length_ = 0;
  int appended_ = 0;          ///< rows of the last append
  bool provisional_ = false;  ///< the last append waits for keep()
};

}  // namespace foresay
