// cli/bench/reading.h: a context in caches, and what passes over it take.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cli/bench/subject.h"
#include "model/model.h"

namespace foresay::cli {

/// Milliseconds of a pass over these rows as verification runs it: provisional, logits of every row read, then undone.
[[nodiscard]] double pass_ms(const Model& model, CacheSet& caches, std::span<const TokenId> rows);

/// A prompt of made-up tokens, read by trunk and head.
class Reading {
 public:
  Reading(const Subject& subject, int context);

  [[nodiscard]] double cache_bytes() const { return cache_bytes_; }  ///< of the context, which a pass reads once
  [[nodiscard]] double head_cache_bytes() const { return head_cache_bytes_; }
  [[nodiscard]] double pass_ms(int rows);
  [[nodiscard]] double draft_ms();  ///< one step of the head, undone; there must be one

 private:
  const Model& model_;
  std::vector<TokenId> tokens_;  ///< the context, then what passes run over
  int context_;
  std::unique_ptr<CacheSet> caches_, head_caches_;
  double cache_bytes_ = 0, head_cache_bytes_ = 0;
  Tensor hidden_;  ///< [1, D] of the last position, as the head reads it
};

}  // namespace foresay::cli
