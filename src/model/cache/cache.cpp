#include "model/cache/cache.h"

#include <algorithm>

#include "base/error.h"

namespace foresay {

void CacheSet::keep(int n) {
  if (!std::ranges::all_of(layers_, [n](const auto& layer) { return layer->can_keep(n); })) {
    fail(ErrorCode::internal, "[caches] keep({}) is not exact in every layer", n);
  }
  for (auto& layer : layers_) layer->keep(n);
}

void CacheSet::truncate(int new_length) {
  if (!std::ranges::all_of(layers_, [new_length](const auto& layer) { return layer->can_truncate(new_length); })) {
    fail(ErrorCode::internal, "[caches] truncate({}) of {} rows is not exact in every layer", new_length, length());
  }
  for (auto& layer : layers_) layer->truncate(new_length);
}

}  // namespace foresay
