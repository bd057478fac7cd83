#include "model/cache/paged_kv_cache.h"

#include <algorithm>

#include "base/error.h"

namespace foresay {

struct PagedKvCache::Snapshot final : CacheSnapshot {
  std::vector<std::shared_ptr<Page>> pages;
  int first_page = 0, length = 0;
};

std::shared_ptr<PagedKvCache::Page> PagedKvCache::new_page() const {
  auto page = std::make_shared<Page>();
  const std::size_t rows = static_cast<std::size_t>(shape_.kv_heads) * kPage * element();
  page->keys.resize(rows * static_cast<std::size_t>(shape_.key_dim));
  page->values.resize(rows * static_cast<std::size_t>(shape_.value_dim));
  return page;
}

std::pair<std::byte*, std::byte*> PagedKvCache::at(int position, int head) const {
  Page& page = *pages_[static_cast<std::size_t>(position / kPage - first_page_)];
  const std::size_t row =
      (static_cast<std::size_t>(head) * kPage + static_cast<std::size_t>(position % kPage)) * element();
  return {page.keys.data() + row * static_cast<std::size_t>(shape_.key_dim),
      page.values.data() + row * static_cast<std::size_t>(shape_.value_dim)};
}

void PagedKvCache::write(int position, int head, const float* key, const float* value) {
  const auto [keys, values] = at(position, head);
  store_kv(key, shape_.key_dim, type_, keys);
  store_kv(value, shape_.value_dim, type_, values);
}

KvBlock PagedKvCache::block(int position, int head, int count) const {
  const auto [keys, values] = at(position, head);
  return {keys, values, count};
}

int PagedKvCache::append(int count, bool provisional) {
  if (provisional_) fail(ErrorCode::internal, "[kv cache] append before keep() settled {} provisional rows", appended_);
  const int live = shape_.first_seen(std::max(0, length_ - kSlack)) / kPage;  // first page that may be asked for again
  if (live > first_page_) {
    pages_.erase(pages_.begin(), pages_.begin() + (live - first_page_));
    first_page_ = live;
  }
  // A partly filled page that a snapshot still sees must not change under it.
  if (length_ % kPage != 0 && pages_.back().use_count() > 1) pages_.back() = std::make_shared<Page>(*pages_.back());
  while ((first_page_ + static_cast<int>(pages_.size())) * kPage < length_ + count) pages_.push_back(new_page());
  const int first = length_;
  length_ += count;
  appended_ = count;
  provisional_ = provisional;
  return first;
}

bool PagedKvCache::can_truncate(int new_length) const {
  if (new_length < 0 || new_length > length_) return false;
  return new_length == 0 || shape_.first_seen(new_length) / kPage >= first_page_;
}

void PagedKvCache::keep(int n) {
  if (!can_keep(n)) fail(ErrorCode::internal, "[kv cache] keep({}) of {} appended rows", n, appended_);
  provisional_ = false;
  truncate(length_ - appended_ + n);
}

void PagedKvCache::truncate(int new_length) {
  if (!can_truncate(new_length)) {
    fail(ErrorCode::internal, "[kv cache] truncate({}) of {} rows; pages from position {} on are left", new_length,
        length_, first_page_ * kPage);
  }
  length_ = new_length;
  if (length_ == 0) first_page_ = 0;
  appended_ = 0;
  provisional_ = false;
  pages_.resize(static_cast<std::size_t>((length_ + kPage - 1) / kPage - first_page_));
}

std::shared_ptr<const CacheSnapshot> PagedKvCache::snapshot() {
  if (provisional_) fail(ErrorCode::internal, "[kv cache] snapshot with {} provisional rows", appended_);
  auto copy = std::make_shared<Snapshot>();
  copy->pages = pages_;
  copy->first_page = first_page_;
  copy->length = length_;
  return copy;
}

void PagedKvCache::restore(const CacheSnapshot& snapshot) {
  const auto& source = dynamic_cast<const Snapshot&>(snapshot);
  pages_ = source.pages;
  first_page_ = source.first_page;
  length_ = source.length;
  appended_ = 0;
  provisional_ = false;
}

std::size_t PagedKvCache::row_bytes() const {
  return static_cast<std::size_t>(shape_.kv_heads) * static_cast<std::size_t>(shape_.key_dim + shape_.value_dim) *
         element();
}

std::size_t PagedKvCache::bytes() const {
  return pages_.size() * kPage * row_bytes();
}

CacheFootprint PagedKvCache::footprint() const {
  if (shape_.window == 0) return {.per_position = row_bytes(), .fixed = 0};
  const std::size_t pages = static_cast<std::size_t>(shape_.window + kSlack) / kPage + 1;  // wherever the window begins
  return {.per_position = 0, .fixed = pages * kPage * row_bytes()};
}

}  // namespace foresay
