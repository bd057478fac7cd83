// decode/accept.h: which drafted tokens survive verification, and what follows them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "decode/sample/chance.h"
#include "decode/sample/distribution.h"
#include "foresay/token.h"

namespace foresay {

/// Outcome of verifying one draft block.
struct Verdict {
  int accepted = 0;   ///< length of the surviving draft prefix, 0..k
  TokenId next = -1;  ///< correction token after a rejection, bonus token otherwise
};

/// The target's distributions [k+1], one per row, made when a row is looked at: acceptance stops at the first
/// rejection, and plain decoding would never see the rows behind it.
class TargetRows {
 public:
  TargetRows(std::size_t size, std::function<Distribution(std::size_t row)> make)
      : size_(size), make_(std::move(make)) {}

  /// Rows that exist already; they must outlive this.
  template <std::convertible_to<std::span<const Distribution>> Rows>
  TargetRows(const Rows& rows) : TargetRows(std::span<const Distribution>(rows).size(), {}) {
    make_ = [all = std::span<const Distribution>(rows)](std::size_t row) { return all[row]; };
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] Distribution operator[](std::size_t row) const { return make_(row); }

 private:
  std::size_t size_;
  std::function<Distribution(std::size_t)> make_;
};

/// Keeps a draft prefix so that emitted tokens are distributed exactly as the target's: draft i survives with
/// probability min(1, p/q); the first that does not is replaced by a draw from the residual max(p - q, 0); after all k
/// a bonus is drawn from p.
///
///   draft  [k]    token ids, oldest first; k may be 0
///   q      [k]    the distributions the draft tokens were drawn from
///   p      [k+1]  the target's, at the same positions and then the bonus position
///   index  generated index of draft[0]
///
/// draft[i] must come from chance.draw(q[i], index + i, Purpose::draft).
/// Survival is keyed `accept`, the correction or bonus `residual`. A token outside q's support was no draw from q: it
/// gives way to a draw from p. A depth policy may look at accepted lengths but not at discarded draft tokens, whose
/// noise the next round uses again. Throws ErrorCode::internal when row counts disagree. Source: Leviathan et al. 2023,
/// arXiv:2211.17192, Algorithm 1.
[[nodiscard]] Verdict accept_ratio(std::span<const TokenId> draft, std::span<const Distribution> q, const TargetRows& p,
    std::uint32_t index, Chance& chance);

/// Keeps a draft token only where it equals the target's own draw at that position, so the emitted ids are those of
/// plain decoding with the same noise (Purpose::draw, for drafting too). Greedy decoding is the case of one-id
/// distributions. Arguments as above. Source: Daliri et al. 2024, arXiv:2408.07978 (Gumbel coupling).
[[nodiscard]] Verdict accept_coupled(
    std::span<const TokenId> draft, const TargetRows& p, std::uint32_t index, Chance& chance);

}  // namespace foresay
