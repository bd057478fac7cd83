#include "decode/sample/distribution.h"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace foresay {

double Distribution::probability(TokenId id) const {
  const auto at = std::ranges::lower_bound(ids, id);
  return at != ids.end() && *at == id ? p[static_cast<std::size_t>(at - ids.begin())] : 0.0;
}

TokenId Distribution::most_likely() const {
  assert(!ids.empty() && ids.size() == p.size());
  return ids[static_cast<std::size_t>(std::ranges::max_element(p) - p.begin())];
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
