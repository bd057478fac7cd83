#include "decode/cost/measure_costs.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "decode/draft/draft_vocabulary.h"

namespace foresay {
namespace {

constexpr int kRows[] = {1, 4, 2, 8};  // most important first; what must be measured is in front
constexpr std::size_t kMust = 2;
constexpr int kMostRepetitions = 15;
constexpr int kLongContext = 1024, kLeastContext = 256;  // positions; fewer are lost in the noise of a pass
constexpr int kFillRows = 64;                            // per pass that fills a cache
constexpr double kFillShare = 0.35;                      // of the budget, to fill the longer context

double system_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// One thing to time.
struct Point {
  int rows = 1;
  bool is_draft = false, is_long = false;
  std::vector<double> ms = {};

  [[nodiscard]] bool is_measured() const { return !ms.empty(); }
};

/// Caches of a made-up sequence, and what a draft step behind it reads.
struct Dummy {
  std::unique_ptr<CacheSet> trunk, head;
  Tensor hidden;  ///< [1, D] of the newest position
};

class Measurement {
 public:
  Measurement(const Model& model, const MeasureOptions& options)
      : model_(model),
        ops_(model.ops()),
        clock_(options.clock_ms ? options.clock_ms : system_ms),
        end_(clock_() + options.budget_ms),
        budget_(options.budget_ms) {}

  CostModel run() {
    short_ = begin();
    for (const int rows : kRows) points_.push_back({.rows = rows});
    if (has_head()) points_.insert(points_.begin() + kMust, Point{.is_draft = true});
    const std::size_t must = kMust + (has_head() ? 1 : 0);
    fill(short_, 1);  // also the warm-up: weights that were never read come from the disk now
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (i < must || fits(expected(points_[i]))) time(points_[i]);
    }
    lengthen();
    for (int repetition = 1; repetition < kMostRepetitions; ++repetition) {
      for (Point& point : points_) {
        if (point.is_measured() && fits(point.ms.back())) time(point);
      }
    }
    return model_costs();
  }

 private:
  [[nodiscard]] bool has_head() const { return model_.info().head_layers > 0; }
  [[nodiscard]] bool fits(double ms) const { return clock_() + ms <= end_; }

  /// Where layers are distinct the first one's step stands for all: they are of one shape.
  Dummy begin() const {
    return {model_.make_caches(), has_head() ? std::move(model_.make_head_caches().front()) : nullptr, {}};
  }

  /// Ids spread over the vocabulary, the same ones at the same positions.
  [[nodiscard]] std::vector<TokenId> ids(int first, int count) const {
    std::vector<TokenId> out;
    for (int i = first; i < first + count; ++i) {
      out.push_back(static_cast<TokenId>((std::int64_t{i} * 7919 + 13) % model_.info().vocab));
    }
    return out;
  }

  Forward pass(Dummy& dummy, int rows, bool provisional, bool all_logits) {
    Pass pass;
    pass.tokens = ids(dummy.trunk->length(), rows);
    pass.slices = {{0, rows, dummy.trunk.get(), provisional}};
    pass.logit_rows = all_logits ? row_range(0, rows) : std::vector<int>{rows - 1};
    Forward forward = model_.forward(pass);
    (void)ops_.read(forward.logits);
    return forward;
  }

  HeadForward draft(Dummy& dummy, const Tensor& hidden, bool output) {
    HeadPass pass;
    pass.hidden = hidden;
    pass.tokens = ids(dummy.head->length() + 1, hidden.rows);
    pass.slices = {{0, hidden.rows, dummy.head.get(), false}};
    if (output) {
      pass.output_rows = {hidden.rows - 1};
      pass.logit_rows = {0};
    }
    const VocabularySubset low{draft_vocabulary_low(model_), {}};
    if (low.low > 0) pass.vocabulary = &low;
    HeadForward forward = model_.draft(pass);
    if (output) (void)ops_.read(forward.logits);
    return forward;
  }

  /// Appends positions for good. The head's cache stays one behind: its newest pair is the draft step's.
  void fill(Dummy& dummy, int rows) {
    const Forward forward = pass(dummy, rows, /*provisional=*/false, /*all_logits=*/false);
    const Tensor& hidden = model_.head_input(forward);
    if (has_head()) {
      std::vector<Tensor> pairs;
      if (dummy.hidden.rows > 0) pairs.push_back(dummy.hidden);
      if (rows > 1) pairs.push_back(ops_.select(hidden, row_range(0, rows - 1)));
      if (!pairs.empty()) (void)draft(dummy, ops_.stack(pairs), /*output=*/false);
    }
    dummy.hidden = ops_.select(hidden, std::vector<int>{rows - 1});
  }

  void time(Point& point) {
    Dummy& dummy = point.is_long ? *long_ : short_;
    const int head_length = has_head() ? dummy.head->length() : 0;
    const double start = clock_();
    if (point.is_draft) {
      (void)draft(dummy, dummy.hidden, /*output=*/true);
    } else {
      (void)pass(dummy, point.rows, /*provisional=*/true, /*all_logits=*/true);
    }
    point.ms.push_back(clock_() - start);
    if (point.is_draft) {
      dummy.head->truncate(head_length);
    } else {
      dummy.trunk->keep(0);
    }
  }

  /// A guess at a point that was not measured yet, from those that must be.
  [[nodiscard]] double expected(const Point& point) const {
    const double one = points_[0].ms.back(), four = points_[1].ms.back();
    return std::max(one + (four - one) * (point.rows - 1) / 3.0, one);
  }

  /// Fills a second context as far as a share of the budget allows, and measures one row and a draft step there.
  void lengthen() {
    const int room = model_.info().context - kRows[3] - 1;
    const double stop = std::min(clock_() + kFillShare * budget_, end_);
    const double rate = points_[1].ms.back() / points_[1].rows;  // a row of a bigger pass costs no more
    const int affordable = static_cast<int>(std::min((stop - clock_()) / std::max(rate, 1e-9), 1e9));
    const int target = std::min({kLongContext, room, affordable});
    if (target >= kLeastContext) {
      long_ = begin();
      while (long_->trunk->length() < target && clock_() < stop) {
        fill(*long_, std::min(kFillRows, target - long_->trunk->length()));
      }
      if (long_->trunk->length() < kLeastContext) return;
      for (const int rows : {1, 4}) points_.push_back({.rows = rows, .is_long = true});
      if (has_head()) points_.push_back({.is_draft = true, .is_long = true});
    } else if (has_head() && room >= kLeastContext) {
      long_ = begin();
      long_->hidden = short_.hidden;
      const Tensor rows = ops_.select(short_.hidden, std::vector<int>(kFillRows, 0));
      while (long_->head->length() < std::min(kLongContext, room) && clock_() < stop) {
        (void)draft(*long_, rows, /*output=*/false);
      }
      points_.push_back({.is_draft = true, .is_long = true});
    }
    for (Point& point : points_) {
      if (point.is_long && fits(expected(point))) time(point);
    }
  }

  [[nodiscard]] const Point* find(int rows, bool is_draft, bool is_long) const {
    const auto found = std::ranges::find_if(points_, [&](const Point& point) {
      return point.rows == rows && point.is_draft == is_draft && point.is_long == is_long && point.is_measured();
    });
    return found == points_.end() ? nullptr : &*found;
  }

  /// What a position adds between the two contexts; nothing where one was not measured.
  [[nodiscard]] std::optional<double> slope(int rows, bool is_draft) const {
    const Point *near = find(rows, is_draft, false), *far = find(rows, is_draft, true);
    if (near == nullptr || far == nullptr) return std::nullopt;
    const int from = is_draft ? short_.head->length() : short_.trunk->length();
    const int to = is_draft ? long_->head->length() : long_->trunk->length();
    return to > from ? std::optional(std::max(median(far->ms) - median(near->ms), 0.0) / (to - from)) : std::nullopt;
  }

  /// Layers whose caches grow with the context: those that can undo by length.
  [[nodiscard]] static int attention_layers(CacheSet& caches, int layers) {
    int count = 0;
    for (int i = 0; i < layers; ++i) count += caches.layer(i).can_truncate(caches.length() - 1) ? 1 : 0;
    return count;
  }

  CostModel model_costs() {
    CostModel costs;
    costs.context = short_.trunk->length();
    const double draft_slope = has_head() ? slope(1, true).value_or(0) : 0;
    const auto one = slope(1, false), four = slope(4, false);
    for (const int rows : {1, 2, 4, 8}) {
      const Point* point = find(rows, false, false);
      if (point == nullptr) continue;
      PassCost cost = {rows, median(point->ms), 0};
      if (one && four) {  // the cache is read once, each row works on all of it
        cost.ms_per_position = *one + std::max(*four - *one, 0.0) * (rows - 1) / 3.0;
      } else if (one) {
        cost.ms_per_position = *one * rows;
      } else {
        cost.ms_per_position = draft_slope * rows * attention_layers(*short_.trunk, model_.info().layers);
      }
      // Noise must not make a bigger pass look cheaper.
      if (!costs.passes.empty()) cost.ms = std::max(cost.ms, costs.passes.back().ms);
      costs.passes.push_back(cost);
    }
    if (has_head()) costs.draft = {1, median(find(1, true, false)->ms), draft_slope};
    return costs;
  }

  const Model& model_;
  Ops& ops_;
  std::function<double()> clock_;
  double end_, budget_;
  Dummy short_;
  std::optional<Dummy> long_;
  std::vector<Point> points_;
};

}  // namespace

CostModel measure_costs(const Model& model, const MeasureOptions& options) {
  return Measurement(model, options).run();
}

}  // namespace foresay
