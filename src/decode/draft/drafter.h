// decode/draft/drafter.h: whoever proposes tokens for the target to verify.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "decode/sample/distribution.h"
#include "foresay/token.h"
#include "model/tensor.h"

namespace foresay {

struct Sequence;

/// What a drafter remembers of one sequence.
struct DraftState {
  virtual ~DraftState() = default;
};

/// Proposed tokens, oldest first, and the distribution that each was drawn from.
struct DraftBlock {
  std::vector<TokenId> tokens;  ///< [k]
  std::vector<Distribution> q;  ///< [k] after every sampling transform
};

/// Proposals never change what is emitted, only how many tokens a pass yields. Engine thread only.
class Drafter {
 public:
  virtual ~Drafter() = default;

  [[nodiscard]] virtual int max_depth() const = 0;
  [[nodiscard]] virtual std::unique_ptr<DraftState> begin() = 0;
  /// A state of its own that remembers the same; made between rounds, for another sequence with the same tokens.
  [[nodiscard]] virtual std::unique_ptr<DraftState> fork(DraftState& state) = 0;

  /// The target has committed further rows of the sequence: hidden [m, D] in order of position, as the contract hands
  /// them over. The sequence's tokens are known one past them, but for the last row of the prompt.
  virtual void observe(Sequence& sequence, const Tensor& hidden) = 0;

  /// At most depths[i] tokens for sequences[i]; fewer, or none, are allowed (an empty block is a plain step).
  [[nodiscard]] virtual std::vector<DraftBlock> propose(
      std::span<Sequence* const> sequences, std::span<const int> depths) = 0;
};

}  // namespace foresay
