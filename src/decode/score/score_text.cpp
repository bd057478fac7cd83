#include "decode/score/score_text.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>

#include "base/error.h"
#include "decode/evaluate.h"

namespace foresay {
namespace {

// Logits of one pass: 64 MiB. A pass reads all weights, so it should have some rows even where a row is long.
constexpr int kPassLogits = 1 << 24, kLeastRows = 8, kMostRows = 128;

std::span<const float> row_of(std::span<const float> values, int width, int row) {
  return values.subspan(
      static_cast<std::size_t>(row) * static_cast<std::size_t>(width), static_cast<std::size_t>(width));
}

/// The target's rows of one pass.
struct Tile {
  int first = 0;
  Tensor hidden;  ///< what the head reads
  Tensor logits;  ///< keeps alive what `rows` borrow
  std::vector<LogRow> rows;

  [[nodiscard]] int end() const { return first + static_cast<int>(rows.size()); }
};

/// One window: target passes, the head following as soon as the rows that judge it are there.
class Window {
 public:
  Window(const Model& model, std::span<const TokenId> ids, std::size_t offset, const ScoreOptions& options,
      TextScore& score)
      : model_(model),
        ops_(model.ops()),
        ids_(ids),
        size_(static_cast<int>(ids.size())),
        offset_(offset),
        options_(options),
        depth_(static_cast<int>(score.steps.size())),
        score_(score),
        caches_(model.make_caches()),
        head_caches_(depth_ > 0 ? model.make_head_caches() : HeadCaches()) {}

  /// False when scoring ends here.
  bool run(int rows) {
    for (int first = 0; first < size_; first += rows) {
      if (options_.cancel != nullptr && *options_.cancel) {
        score_.cancelled = true;
        return false;
      }
      if (!run_target(first, std::min(rows, size_ - first))) return false;
      const int known = tiles_.back().end();
      // A block needs the target's rows up to `depth` behind its own, or to the end of the window.
      const int end = known == size_ ? size_ - 1 : known - depth_;
      if (depth_ > 0) run_head(end);
      next_ = std::max(next_, end);
      while (tiles_.size() > 1 && tiles_.front().end() <= next_) tiles_.pop_front();
    }
    return true;
  }

 private:
  bool run_target(int first, int count) {
    Pass pass;
    pass.tokens.assign(ids_.begin() + first, ids_.begin() + first + count);
    pass.slices = {{0, count, caches_.get(), false}};
    pass.logit_rows = row_range(0, count);
    Forward forward = model_.forward(pass);
    Tile& tile = tiles_.emplace_back();
    tile.first = first;
    tile.hidden = model_.head_input(forward);
    tile.logits = std::move(forward.logits);
    const std::span<const float> logits = ops_.read(tile.logits);
    for (int i = 0; i < count; ++i) {
      const auto row = log_row(row_of(logits, tile.logits.width, i), score_.problem);
      const std::size_t token = offset_ + static_cast<std::size_t>(first + i);
      if (!row) {
        score_.problem = fmt::format("behind token {} of the text {}", token, score_.problem);
        return false;
      }
      tile.rows.push_back(*row);
      if (options_.on_row) options_.on_row(token, *row);
      if (first + i + 1 == size_) continue;
      const TokenId next = ids_[static_cast<std::size_t>(first + i + 1)];
      score_.nats -= (*row)[next];
      score_.correct += row->best == next ? 1 : 0;
      ++score_.predicted;
    }
    return true;
  }

  /// Blocks that start at the rows next_ .. end-1. Their first steps are the head's genuine history and share a pass.
  /// So do the deeper steps of distinct layers; those of a reused layer are the block's own, so each block goes on in a
  /// copy of the caches cut behind its first pair.
  void run_head(int end) {
    const int count = end - next_;
    if (count <= 0) return;
    const HeadScheme scheme = model_.info().head_scheme;
    HeadPass pass;
    pass.hidden = hidden_rows(count);
    pass.tokens.assign(ids_.begin() + next_ + 1, ids_.begin() + end + 1);
    pass.slices = {{0, count, head_caches_.front().get(), false}};
    pass.output_rows = pass.logit_rows = row_range(0, count);
    HeadForward forward = model_.draft(pass);
    score_step(1, forward.logits);

    std::vector<HeadCaches> blocks;
    if (depth_ > 1 && scheme == HeadScheme::reused) {
      const CacheSet::Snapshot history = head_caches_.front()->snapshot();
      for (int t = next_; t < end; ++t) {
        blocks.push_back(model_.make_head_caches());
        blocks.back().front()->restore(history);
        blocks.back().front()->truncate(t + 1);
      }
    }
    for (int step = 2; step <= depth_; ++step) {
      const int rows = std::min(end, size_ - step) - next_;  // blocks near the end of the window are shorter
      if (rows <= 0) break;
      HeadPass deeper;
      deeper.step = step;
      deeper.hidden = ops_.select(scheme == HeadScheme::parallel ? pass.hidden : forward.recycled, row_range(0, rows));
      deeper.tokens.assign(ids_.begin() + next_ + step, ids_.begin() + next_ + step + rows);
      if (scheme == HeadScheme::reused) {
        for (int i = 0; i < rows; ++i) {
          deeper.slices.push_back({i, 1, blocks[static_cast<std::size_t>(i)].front().get(), false});
        }
      } else {
        deeper.slices = {{0, rows, head_caches_[static_cast<std::size_t>(step - 1)].get(), false}};
      }
      deeper.output_rows = deeper.logit_rows = row_range(0, rows);
      forward = model_.draft(deeper);
      score_step(step, forward.logits);
    }
  }

  /// The hidden states of the rows next_ .. next_+count-1.
  Tensor hidden_rows(int count) {
    std::vector<Tensor> parts;
    for (const Tile& tile : tiles_) parts.push_back(tile.hidden);
    return ops_.select(ops_.stack(parts), row_range(next_ - tiles_.front().first, count));
  }

  const LogRow& target_row(int t) const {
    const auto tile = std::ranges::find_if(tiles_, [t](const Tile& each) { return t < each.end(); });
    return tile->rows.at(static_cast<std::size_t>(t - tile->first));
  }

  void score_step(int step, const Tensor& logits) {
    StepScore& score = score_.steps[static_cast<std::size_t>(step - 1)];
    const std::span<const float> values = ops_.read(logits);
    std::string ignored;
    for (int i = 0; i < logits.rows; ++i) {
      ++score.positions;
      const auto q = log_row(row_of(values, logits.width, i), ignored);
      if (!q) {
        ++score.unusable;
        continue;
      }
      const LogRow& p = target_row(next_ + i + step);
      score.agreed += q->best == p.best ? 1 : 0;
      score.overlap += overlap(p, *q);
    }
  }

  const Model& model_;
  Ops& ops_;
  std::span<const TokenId> ids_;
  int size_;
  std::size_t offset_;  ///< of the window in the text
  const ScoreOptions& options_;
  int depth_;
  TextScore& score_;
  std::unique_ptr<CacheSet> caches_;
  HeadCaches head_caches_;
  std::deque<Tile> tiles_;  ///< those that a head row still needs
  int next_ = 0;            ///< first row whose block has not run
};

void check(const ModelInfo& info, std::span<const TokenId> ids, int window) {
  if (ids.size() < 2)
    fail(ErrorCode::usage, "[eval] expected at least 2 tokens, since the first predicts the second, found {}",
        ids.size());
  if (window < 2 || window > info.context) {
    fail(ErrorCode::usage, "[eval] window: expected 2 to {}, which this checkpoint's context holds, found {}",
        info.context, window);
  }
  check_ids(ids, info);
}

}  // namespace

TextScore score_text(const Model& model, std::span<const TokenId> ids, const ScoreOptions& options) {
  const ModelInfo& info = model.info();
  check(info, ids, options.window);
  TextScore score;
  score.tokens = static_cast<std::int64_t>(ids.size());
  const auto longest = static_cast<int>(std::min(ids.size(), static_cast<std::size_t>(options.window)));
  score.steps.resize(static_cast<std::size_t>(std::min({options.depth, info.max_depth, longest - 1})));
  int rows = std::clamp(kPassLogits / info.vocab, kLeastRows, kMostRows);
  if (options.chunk > 0) rows = std::min(rows, options.chunk);
  const auto window = static_cast<std::size_t>(options.window);
  for (std::size_t first = 0; first < ids.size(); first += window) {
    ++score.windows;
    const auto part = ids.subspan(first, std::min(window, ids.size() - first));
    if (!Window(model, part, first, options, score).run(rows)) break;
  }
  return score;
}

}  // namespace foresay
