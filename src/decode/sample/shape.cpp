#include "decode/sample/shape.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "base/error.h"
#include "decode/sample/candidates.h"
#include "decode/sample/scan.h"

namespace foresay {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A row on its way through the chain: first the whole row, then what the filters left. Everything is relative to the
/// peak of what is left, in units of the row divided by the temperature once that step has been taken.
class Chain {
 public:
  /// `row` without what cannot be emitted.
  Chain(LogitRow row, const SamplingOptions& options, Peak peak)
      : source_(std::move(row)), row_(source_.logits), options_(options), peak_(peak), peak_logit_(peak.logit) {}

  void run(bool xtc) {
    const std::vector<SamplingStep>& order = options_.order;
    std::size_t i = 0;
    while (i < order.size() && !filters(order[i], xtc)) scale(order[i++]);
    i = leading_run(i, xtc);
    for (; i < order.size(); ++i) {
      if (filters(order[i], xtc)) {
        filter(order[i]);
      } else {
        scale(order[i]);
      }
    }
  }

  [[nodiscard]] Distribution distribution() && {
    if (whole_) return Distribution(RowSoftmax(std::move(source_), peak_, temperature_));
    std::vector<TokenId> ids;
    std::vector<double> p;
    double total = 0;
    std::ranges::sort(kept_, {}, &Candidate::column);
    for (const Candidate& each : kept_) {
      const double weight = this->weight(each.logit);
      // Below the normal range a weight divided by the total could round to 0, and support means positive.
      if (weight < std::numeric_limits<double>::min()) continue;
      ids.push_back(source_.id(each.column));
      p.push_back(weight);
      total += weight;
    }
    for (double& each : p) each /= total;
    return {std::move(ids), std::move(p)};
  }

 private:
  [[nodiscard]] double weight(float logit) const { return std::exp((logit - peak_logit_) / temperature_); }

  [[nodiscard]] bool filters(SamplingStep step, bool xtc) const {
    switch (step) {
      case SamplingStep::top_p:
        return options_.top_p < 1;
      case SamplingStep::min_p:
        return options_.min_p > 0;
      case SamplingStep::xtc:
        return xtc;
      case SamplingStep::top_k:
        return options_.top_k > 0;
      case SamplingStep::temperature:
        return false;
    }
    return false;
  }

  void scale(SamplingStep step) {
    if (step == SamplingStep::temperature) temperature_ = options_.temperature;
  }

  /// The filters at the beginning of the chain, in one walk over the whole row. Top-p measures the whole row when it
  /// comes first; then it, min-p and top-k each keep a run of most likely ids, and their order among each other is
  /// free. Returns the first step that is still to be taken.
  std::size_t leading_run(std::size_t i, bool xtc) {
    const std::vector<SamplingStep>& order = options_.order;
    double floor = kNoFloor, total = 0;
    std::size_t top_k = 0;
    bool top_p = false, any = false;
    for (; i < order.size(); ++i) {
      if (!filters(order[i], xtc)) {
        if (order[i] == SamplingStep::temperature) break;
        continue;
      }
      if (order[i] == SamplingStep::xtc || (order[i] == SamplingStep::top_p && any)) break;
      if (order[i] == SamplingStep::min_p && options_.min_keep > 1) break;
      any = true;
      if (order[i] == SamplingStep::top_k) top_k = static_cast<std::size_t>(options_.top_k);
      if (order[i] == SamplingStep::min_p) floor = std::max(floor, std::log(options_.min_p) * temperature_);
      if (order[i] == SamplingStep::top_p) {
        top_p = true;
        total = sum_exp(row_, peak_logit_, std::min(1 / temperature_, std::numeric_limits<double>::max()));
        // All ids lighter than this together weigh less than 1 - top_p, so top-p drops them. The margin is far above
        // rounding.
        const double light = (1 - options_.top_p) * total / static_cast<double>(row_.size());
        floor = std::max(floor, (std::log(light) - 1e-3) * temperature_);
      }
    }
    if (!any) return i;
    kept_ = collect(row_, peak_logit_, floor, top_k);
    whole_ = false;
    if (top_p) keep_nucleus(options_.top_p * total);
    return i;
  }

  /// One filter on what is left.
  void filter(SamplingStep step) {
    if (whole_) {
      kept_ = collect(row_, peak_logit_, kNoFloor, 0);
      whole_ = false;
    }
    switch (step) {
      case SamplingStep::top_p: {
        double total = 0;
        for (const Candidate& each : kept_) total += weight(each.logit);
        keep_nucleus(options_.top_p * total);
        break;
      }
      case SamplingStep::min_p:
        keep_min_p();
        break;
      case SamplingStep::xtc:
        drop_likely();
        break;
      case SamplingStep::top_k:
        keep_most_likely(static_cast<std::size_t>(options_.top_k));
        break;
      case SamplingStep::temperature:
        break;
    }
  }

  void keep_most_likely(std::size_t k) {
    if (k >= kept_.size()) return;
    std::ranges::nth_element(kept_, kept_.begin() + static_cast<std::ptrdiff_t>(k) - 1, more_likely);
    kept_.resize(k);
  }

  /// Keeps a candidate while the mass of all strictly more likely ids is below `mass`; equal logits stay or go
  /// together. A heap, because most rows need only their first few dozen ids in order.
  void keep_nucleus(double mass) {
    const auto less_likely = [](const Candidate& a, const Candidate& b) { return more_likely(b, a); };
    std::vector<Candidate> heap = std::exchange(kept_, {});
    std::ranges::make_heap(heap, less_likely);
    double sum = 0;
    while (!heap.empty()) {
      std::ranges::pop_heap(heap, less_likely);
      const Candidate next = heap.back();
      heap.pop_back();
      if (!kept_.empty() && next.logit < kept_.back().logit && sum >= mass) break;
      kept_.push_back(next);
      sum += weight(next.logit);
    }
  }

  void keep_min_p() {
    const double floor = std::log(options_.min_p) * temperature_;
    const auto keep = static_cast<std::size_t>(options_.min_keep);
    if (keep < kept_.size()) {
      const auto spared = kept_.begin() + static_cast<std::ptrdiff_t>(keep);
      if (keep > 1) std::ranges::nth_element(kept_, spared - 1, more_likely);
      const auto low = [&](const Candidate& each) { return each.logit - peak_logit_ < floor; };
      kept_.erase(std::remove_if(keep > 1 ? spared : kept_.begin(), kept_.end(), low), kept_.end());
    }
  }

  /// Of the ids with at least the threshold's probability only the least likely stays (and its equals), so that a
  /// likely but not the likeliest continuation is taken. Source: mlx-lm 0.32, apply_xtc.
  void drop_likely() {
    double total = 0;
    for (const Candidate& each : kept_) total += weight(each.logit);
    const double bar = options_.xtc_threshold * total;
    float least = kInfinity;
    for (const Candidate& each : kept_) {
      if (weight(each.logit) > bar) least = std::min(least, each.logit);
    }
    std::erase_if(kept_, [&](const Candidate& each) {
      return each.logit > least &&
             std::ranges::find(options_.xtc_exempt, source_.id(each.column)) == options_.xtc_exempt.end();
    });
    peak_logit_ = std::ranges::max_element(kept_, {}, &Candidate::logit)->logit;
  }

  LogitRow source_;
  std::span<const float> row_;
  const SamplingOptions& options_;
  Peak peak_;
  double peak_logit_;       ///< of what is left
  double temperature_ = 1;  ///< 1 until that step has been taken
  bool whole_ = true;       ///< nothing was filtered yet
  std::vector<Candidate> kept_;
};

}  // namespace

Distribution shape(LogitRow row, const SamplingOptions& options, bool xtc) {
  std::string problem;
  const auto peak = look_for_peak(row, options.vocab_limit, problem);
  if (!peak) fail(ErrorCode::internal, "[sample] {}", problem);
  return shape(std::move(row), *peak, options, xtc);
}

Distribution shape(LogitRow row, Peak peak, const SamplingOptions& options, bool xtc) {
  if (options.greedy()) return {{peak.id}, {1.0}};
  row.logits = emittable(row, options.vocab_limit);
  Chain chain(std::move(row), options, peak);
  chain.run(xtc);
  return std::move(chain).distribution();
}

}  // namespace foresay
