// decode/draft/layered_drafter.h: drafts from an MTP head that has a layer of its own for every depth.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "decode/draft/drafter.h"
#include "foresay/token.h"
#include "model/model.h"

namespace foresay {

/// Let x_0 .. x_T be the known tokens and h_p the target's hidden state at position p < T. Row p of layer i (from 0)
/// reads a hidden state and the token x_{p+1+i}, and predicts x_{p+2+i}; its key and value are row p of cache i. The
/// hidden state is h_p in layer 0 and under HeadScheme::parallel; under HeadScheme::chained it is what layer i - 1 left
/// at row p.
///
/// A row is certain when its token is known and its hidden state was made from certain rows alone: row p <= T - 1 - i.
/// Draft i + 1 of a round comes from row T - 1 of layer i, so the last i rows of that pass read drafts. They leave the
/// cache again at once: between passes, cache i holds certain rows only, without a gap, and the hidden states that its
/// next rows read wait beside it. So nothing has to be undone after a rejection, and a layer that nobody drafts from
/// costs a pass per kMostWaiting tokens, not one per round, and lacks nothing when it is next needed.
///
/// A round at depth k is k passes over all sequences. The model must outlive the drafter and have a distinct head.
class LayeredDrafter final : public Drafter {
 public:
  /// `always` are ids that drafts may be whatever part of the vocabulary they come from (vocabulary_of).
  explicit LayeredDrafter(const Model& model, std::vector<TokenId> always = {})
      : model_(model), always_(std::move(always)) {}

  [[nodiscard]] int max_depth() const override { return model_.info().max_depth; }
  [[nodiscard]] std::unique_ptr<DraftState> begin() override;
  [[nodiscard]] std::unique_ptr<DraftState> fork(DraftState& state) override;
  void observe(Sequence& sequence, const Tensor& hidden) override;
  [[nodiscard]] std::vector<DraftBlock> propose(
      std::span<Sequence* const> sequences, std::span<const int> depths) override;

  /// Head caches of a state, one set per layer, for tests: certain rows only.
  [[nodiscard]] static const HeadCaches& caches(const DraftState& state);

 private:
  const Model& model_;
  std::vector<TokenId> always_;
};

}  // namespace foresay
