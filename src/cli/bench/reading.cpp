#include "cli/bench/reading.h"

#include <algorithm>

#include "base/error.h"
#include "cli/bench/timed_model.h"
#include "decode/draft/draft_vocabulary.h"

namespace foresay::cli {
namespace {

constexpr int kChunk = 512, kMostRows = 64;

}  // namespace

double pass_ms(const Model& model, CacheSet& caches, std::span<const TokenId> rows) {
  const int count = static_cast<int>(rows.size());
  Pass pass;
  pass.tokens.assign(rows.begin(), rows.end());
  pass.slices = {{0, count, &caches, /*provisional=*/true}};
  pass.logit_rows = row_range(0, count);
  const auto start = std::chrono::steady_clock::now();
  const Forward forward = model.forward(pass);
  (void)model.ops().read(forward.logits);
  const double taken = milliseconds_since(start);
  caches.keep(0);
  return taken;
}

Reading::Reading(const Subject& subject, int context)
    : model_(subject.model()),
      tokens_(subject.tokens(context + kMostRows)),
      context_(context),
      caches_(model_.make_caches()) {
  if (context + kMostRows > model_.info().context) {
    fail(ErrorCode::usage, "--context: expected at most {}, {} fewer than this checkpoint's, found {}",
        model_.info().context - kMostRows, kMostRows, context);
  }
  if (subject.open().has_head()) head_caches_ = std::move(model_.make_head_caches().front());
  for (int first = 0; first < context; first += kChunk) {
    const int count = std::min(kChunk, context - first);
    Pass pass;
    pass.tokens.assign(tokens_.begin() + first, tokens_.begin() + first + count);
    pass.slices = {{0, count, caches_.get(), false}};
    pass.logit_rows = {count - 1};
    const Forward forward = model_.forward(pass);
    (void)model_.ops().read(forward.logits);
    hidden_ = model_.ops().select(model_.head_input(forward), std::vector<int>{count - 1});
    if (!head_caches_) continue;
    HeadPass history;  // the last position's pair is what draft_ms() runs over
    history.hidden = model_.head_input(forward);
    history.tokens.assign(tokens_.begin() + first + 1, tokens_.begin() + first + 1 + count);
    history.slices = {{0, count, head_caches_.get(), false}};
    (void)model_.draft(history);
  }
  cache_bytes_ = static_cast<double>(caches_->bytes());
  if (!head_caches_) return;
  head_caches_->truncate(context - 1);
  head_cache_bytes_ = static_cast<double>(head_caches_->bytes());
}

double Reading::pass_ms(int rows) {
  return cli::pass_ms(model_, *caches_,
      std::span(tokens_).subspan(static_cast<std::size_t>(context_)).first(static_cast<std::size_t>(rows)));
}

double Reading::draft_ms() {
  HeadPass pass;
  pass.hidden = hidden_;
  pass.tokens = {tokens_[static_cast<std::size_t>(context_)]};
  pass.slices = {{0, 1, head_caches_.get(), false}};
  pass.output_rows = pass.logit_rows = {0};
  const VocabularySubset low{draft_vocabulary_low(model_), {}};
  if (low.low > 0) pass.vocabulary = &low;
  const auto start = std::chrono::steady_clock::now();
  const HeadForward forward = model_.draft(pass);
  (void)model_.ops().read(forward.logits);
  const double taken = milliseconds_since(start);
  head_caches_->truncate(context_ - 1);
  return taken;
}

}  // namespace foresay::cli
