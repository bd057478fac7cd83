#include "decode/sample/shape.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "base/error.h"
#include "decode/sample/row.h"

namespace foresay {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kNoFloor = -std::numeric_limits<double>::infinity();

/// One id and its logit.
struct Candidate {
  float logit;
  TokenId id;
};

/// The total order of a row: higher logit first, lower id among equals.
bool more_likely(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/// Candidates that pass min-p, top-k and the part of top-p that needs no order, in no order.
///   floor  lowest logit kept, relative to the peak
std::vector<Candidate> collect(std::span<const float> row, double peak_logit, double floor, std::size_t top_k) {
  // A buffer somewhat larger than k is cut back to k whenever it is full. What is cut can never return, so its border
  // rejects most of the row with one comparison. Ids ascend, so a later id that equals the border loses the tie.
  constexpr std::size_t kSlack = 1024;
  const bool cuts = top_k > 0 && top_k < row.size();
  const std::size_t room = cuts ? 2 * top_k + kSlack : row.size() + 1;
  std::vector<Candidate> kept;
  float border = -kInfinity;
  const auto cut = [&] {
    const auto last = kept.begin() + static_cast<std::ptrdiff_t>(top_k) - 1;
    std::nth_element(kept.begin(), last, kept.end(), more_likely);
    kept.resize(top_k);
    border = kept.back().logit;
  };
  for (std::size_t id = 0; id < row.size(); ++id) {
    if (!(row[id] > border) || row[id] - peak_logit < floor) continue;
    kept.push_back({row[id], static_cast<TokenId>(id)});
    if (kept.size() == room) cut();
  }
  if (cuts && kept.size() > top_k) cut();
  return kept;
}

/// A row on its way through the chain: first the whole row, then what the filters left. Everything is relative to the
/// peak of what is left, in units of the row divided by the temperature once that step has been taken.
class Chain {
 public:
  Chain(std::span<const float> row, const SamplingOptions& options, Peak peak)
      : row_(row), options_(options), peak_logit_(peak.logit) {}

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
    Distribution d;
    double total = 0;
    const auto add = [&](TokenId id, float logit) {
      const double weight = this->weight(logit);
      // Below the normal range a weight divided by the total could round to 0, and support means positive.
      if (weight < std::numeric_limits<double>::min()) return;
      d.ids.push_back(id);
      d.p.push_back(weight);
      total += weight;
    };
    d.ids.reserve(whole_ ? row_.size() : kept_.size());
    d.p.reserve(d.ids.capacity());
    if (whole_) {
      for (std::size_t id = 0; id < row_.size(); ++id) add(static_cast<TokenId>(id), row_[id]);
    } else {
      std::ranges::sort(kept_, {}, &Candidate::id);
      for (const Candidate& each : kept_) add(each.id, each.logit);
    }
    for (double& p : d.p) p /= total;
    return d;
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
        for (const float logit : row_) total += weight(logit);
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
      return each.logit > least && std::ranges::find(options_.xtc_exempt, each.id) == options_.xtc_exempt.end();
    });
    peak_logit_ = std::ranges::max_element(kept_, {}, &Candidate::logit)->logit;
  }

  std::span<const float> row_;
  const SamplingOptions& options_;
  double peak_logit_;
  double temperature_ = 1;  ///< 1 until that step has been taken
  bool whole_ = true;       ///< nothing was filtered yet
  std::vector<Candidate> kept_;
};

}  // namespace

Distribution shape(std::span<const float> logits, const SamplingOptions& options, bool xtc) {
  const Peak peak = find_peak(logits, options.vocab_limit);
  if (options.greedy()) return {{peak.id}, {1.0}};
  Chain chain(emittable(logits, options.vocab_limit), options, peak);
  chain.run(xtc);
  return std::move(chain).distribution();
}

}  // namespace foresay
