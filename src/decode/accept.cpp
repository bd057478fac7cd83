#include "decode/accept.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"

namespace foresay {
namespace {

/// Index of the row-th position behind `index`.
std::uint32_t at(std::uint32_t index, std::size_t row) {
  return index + static_cast<std::uint32_t>(row);
}

void check_rows(std::size_t draft, std::size_t p) {
  if (p != draft + 1) {
    fail(ErrorCode::internal, "[accept] target rows: expected {} for {} draft tokens, found {}", draft + 1, draft, p);
  }
}

}  // namespace

Verdict accept_ratio(std::span<const TokenId> draft, std::span<const Distribution> q, const TargetRows& p,
    std::uint32_t index, Chance& chance) {
  check_rows(draft.size(), p.size());
  if (q.size() != draft.size()) {
    fail(ErrorCode::internal, "[accept] draft rows: expected {}, found {}", draft.size(), q.size());
  }
  for (std::size_t i = 0; i < draft.size(); ++i) {
    const Distribution target = p[i];
    const double drafted = q[i].probability(draft[i]);
    if (drafted <= 0) {
      // Not a draw from q, so q says nothing about it; a fresh draw from p is exact whatever the token was.
      return {static_cast<int>(i), chance.draw(target, at(index, i), Purpose::residual)};
    }
    const double wanted = target.probability(draft[i]);
    if (!chance.happens(std::min(1.0, wanted / drafted), at(index, i), Purpose::accept)) {
      return {static_cast<int>(i), chance.draw(residual(target, q[i]), at(index, i), Purpose::residual)};
    }
  }
  const TokenId bonus = chance.draw(p[draft.size()], at(index, draft.size()), Purpose::residual);
  return {static_cast<int>(draft.size()), bonus};
}

Verdict accept_coupled(std::span<const TokenId> draft, const TargetRows& p, std::uint32_t index, Chance& chance) {
  check_rows(draft.size(), p.size());
  for (std::size_t i = 0; i < draft.size(); ++i) {
    const TokenId own = chance.draw(p[i], at(index, i), Purpose::draw);
    if (own != draft[i]) return {static_cast<int>(i), own};
  }
  return {static_cast<int>(draft.size()), chance.draw(p[draft.size()], at(index, draft.size()), Purpose::draw)};
}

}  // namespace foresay
