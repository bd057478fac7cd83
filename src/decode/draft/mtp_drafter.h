// decode/draft/mtp_drafter.h: drafts from an MTP head of one layer that every step reuses.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "decode/draft/drafter.h"
#include "foresay/token.h"
#include "model/model.h"

namespace foresay {

/// The head's cache holds only pairs made from the target's hidden states. Deeper steps of a block append pairs made
/// from the head's own states; those leave again before the block is verified. The model must outlive the drafter and
/// have a head.
class MtpDrafter final : public Drafter {
 public:
  /// `always` are ids that drafts may be whatever part of the vocabulary they come from (vocabulary_of).
  explicit MtpDrafter(const Model& model, std::vector<TokenId> always = {})
      : model_(model), always_(std::move(always)) {}

  [[nodiscard]] int max_depth() const override { return model_.info().max_depth; }
  [[nodiscard]] std::unique_ptr<DraftState> begin() override;
  [[nodiscard]] std::unique_ptr<DraftState> fork(DraftState& state) override;
  void observe(Sequence& sequence, const Tensor& hidden) override;
  [[nodiscard]] std::vector<DraftBlock> propose(
      std::span<Sequence* const> sequences, std::span<const int> depths) override;

 private:
  const Model& model_;
  std::vector<TokenId> always_;
};

}  // namespace foresay
