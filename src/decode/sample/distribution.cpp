#include "decode/sample/distribution.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "base/error.h"

namespace foresay {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// One id and its logit.
struct Candidate {
  float logit;
  TokenId id;
};

/// The total order of a row: higher logit first, lower id among equals.
bool more_likely(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/// The part of the row that can be emitted.
std::span<const float> allowed(std::span<const float> logits, TokenId vocab_limit) {
  return logits.first(std::min(logits.size(), static_cast<std::size_t>(std::max(vocab_limit, 0))));
}

[[noreturn]] void fail_not_finite(std::span<const float> logits) {
  const int bad = first_not_finite(logits);
  assert(bad >= 0);
  fail(ErrorCode::internal, "[sample] logit of id {}: expected a number, found {}", bad,
      logits[static_cast<std::size_t>(bad)]);
}

/// The highest logit, -inf in an empty span; sets `bad` where a logit is NaN or +inf.
float highest(std::span<const float> logits, bool& bad) {
  // Independent lanes, so that the compiler can use vectors: a single running maximum is a chain it must not reorder.
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> best;
  std::array<int, kLanes> finite;
  best.fill(-kInfinity);
  finite.fill(1);
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float logit = logits[i + lane];
      best[lane] = logit > best[lane] ? logit : best[lane];
      finite[lane] &= logit < kInfinity ? 1 : 0;
    }
  }
  for (std::size_t lane = 0; i < logits.size(); ++i, ++lane) {
    best[lane] = std::max(best[lane], logits[i]);
    finite[lane] &= logits[i] < kInfinity ? 1 : 0;
  }
  bad = bad || std::ranges::find(finite, 0) != finite.end();
  return std::ranges::max(best);
}

/// The first candidate in more_likely's order. Looks at the whole row for non-finite logits, also behind vocab_limit: a
/// forward pass that makes NaN anywhere is not to be trusted elsewhere.
Candidate peak(std::span<const float> logits, TokenId vocab_limit) {
  const auto row = allowed(logits, vocab_limit);
  bool bad = false;
  const float best = highest(row, bad);
  (void)highest(logits.subspan(row.size()), bad);
  if (bad) fail_not_finite(logits);
  if (best == -kInfinity) {
    fail(ErrorCode::internal, "[sample] expected an id that can be emitted, found all {} logits from id 0 to be -inf",
        row.size());
  }
  return {best, static_cast<TokenId>(std::ranges::find(row, best) - row.begin())};
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

/// Keeps a candidate while the mass of all strictly more likely ids is below `mass`; equal logits stay or go together.
/// A heap, because most rows need only their first few dozen ids in order.
std::vector<Candidate> nucleus(std::vector<Candidate> heap, double peak_logit, double mass) {
  const auto less_likely = [](const Candidate& a, const Candidate& b) { return more_likely(b, a); };
  std::ranges::make_heap(heap, less_likely);
  std::vector<Candidate> kept;
  double sum = 0;
  while (!heap.empty()) {
    std::ranges::pop_heap(heap, less_likely);
    const Candidate next = heap.back();
    heap.pop_back();
    if (!kept.empty() && next.logit < kept.back().logit && sum >= mass) break;
    kept.push_back(next);
    sum += std::exp(next.logit - peak_logit);
  }
  return kept;
}

/// Ids that every filter keeps, ascending. Source: mlx-lm 0.32, sample_utils.py. There the filters run one after the
/// other, top-p first; each keeps a run of most likely ids and top-p measures mass over the whole row, so their order
/// is free here.
std::vector<TokenId> survivors(std::span<const float> row, double peak_logit, const SamplingOptions& options) {
  double floor = options.min_p > 0 ? std::log(options.min_p) : -std::numeric_limits<double>::infinity();
  double total = 0;  // mass of the row, relative to the peak's
  if (options.top_p < 1) {
    for (const float logit : row) total += std::exp(logit - peak_logit);
    // All ids lighter than this together weigh less than 1 - top_p, so top-p drops them. The margin is far above
    // rounding.
    const double light = (1 - options.top_p) * total / static_cast<double>(row.size());
    floor = std::max(floor, std::log(light) - 1e-3);
  }
  auto kept = collect(row, peak_logit, floor, static_cast<std::size_t>(options.top_k));
  if (options.top_p < 1) kept = nucleus(std::move(kept), peak_logit, options.top_p * total);
  std::vector<TokenId> ids(kept.size());
  std::ranges::transform(kept, ids.begin(), &Candidate::id);
  std::ranges::sort(ids);
  return ids;
}

/// Probabilities at a temperature, of logits given in ascending order of id.
class Softmax {
 public:
  Softmax(double peak_logit, double temperature, std::size_t n) : peak_logit_(peak_logit), temperature_(temperature) {
    d_.ids.reserve(n);
    d_.p.reserve(n);
  }

  void add(TokenId id, float logit) {
    const double weight = std::exp((logit - peak_logit_) / temperature_);
    // Below the normal range a weight divided by the total could round to 0, and support means positive.
    if (weight < std::numeric_limits<double>::min()) return;
    d_.ids.push_back(id);
    d_.p.push_back(weight);
    total_ += weight;
  }

  Distribution finish() && {
    for (double& p : d_.p) p /= total_;
    return std::move(d_);
  }

 private:
  Distribution d_;
  double peak_logit_, temperature_;
  double total_ = 0;
};

}  // namespace

double Distribution::probability(TokenId id) const {
  const auto at = std::ranges::lower_bound(ids, id);
  return at != ids.end() && *at == id ? p[static_cast<std::size_t>(at - ids.begin())] : 0.0;
}

TokenId Distribution::most_likely() const {
  assert(!ids.empty() && ids.size() == p.size());
  return ids[static_cast<std::size_t>(std::ranges::max_element(p) - p.begin())];
}

TokenId argmax(std::span<const float> logits, TokenId vocab_limit) {
  return peak(logits, vocab_limit).id;
}

int first_not_finite(std::span<const float> logits, TokenId vocab_limit) {
  const auto row = allowed(logits, vocab_limit);
  bool bad = false;
  const float best = highest(row, bad);
  (void)highest(logits.subspan(row.size()), bad);
  if (bad) {
    const auto first = std::ranges::find_if_not(logits, [](float logit) { return logit < kInfinity; });
    return static_cast<int>(first - logits.begin());
  }
  return best == -kInfinity ? 0 : -1;
}

Distribution shape(std::span<const float> logits, const SamplingOptions& options) {
  const auto [peak_logit, peak_id] = peak(logits, options.vocab_limit);
  if (options.greedy()) return {{peak_id}, {1.0}};
  const auto row = allowed(logits, options.vocab_limit);
  if (options.top_k == 0 && options.top_p >= 1 && options.min_p <= 0) {
    Softmax softmax(peak_logit, options.temperature, row.size());
    for (std::size_t id = 0; id < row.size(); ++id) softmax.add(static_cast<TokenId>(id), row[id]);
    return std::move(softmax).finish();
  }
  const auto ids = survivors(row, peak_logit, options);
  Softmax softmax(peak_logit, options.temperature, ids.size());
  for (const TokenId id : ids) softmax.add(id, row[static_cast<std::size_t>(id)]);
  return std::move(softmax).finish();
}

Distribution residual(const Distribution& p, const Distribution& q) {
  Distribution left;
  double total = 0;
  std::size_t j = 0;
  for (std::size_t i = 0; i < p.ids.size(); ++i) {
    while (j < q.ids.size() && q.ids[j] < p.ids[i]) ++j;
    const double excess = p.p[i] - (j < q.ids.size() && q.ids[j] == p.ids[i] ? q.p[j] : 0.0);
    if (excess <= 0) continue;
    left.ids.push_back(p.ids[i]);
    left.p.push_back(excess);
    total += excess;
  }
  if (left.ids.empty()) return p;
  for (double& excess : left.p) excess /= total;
  return left;
}

}  // namespace foresay
