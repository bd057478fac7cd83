// decode/draft/mtp_drafter.h: drafts from the model's own MTP head.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "decode/draft/drafter.h"
#include "model/model.h"
#include "model/vocabulary_subset.h"

namespace foresay {

/// The head's cache holds only pairs made from the target's hidden states. Deeper steps of a block append pairs made
/// from the head's own states; those leave again before the block is verified. The model must outlive the drafter and
/// have a head.
///
/// The vocabulary matrix is a large part of what the head costs, and a draft is verified wherever it came from. So the
/// head's rows may be those of a part of the vocabulary (DecodeOptions::draft_vocabulary): the low ids, special tokens,
/// ends of turns, and the ids of the context. q is then a distribution over that part, the one that the draft was drawn
/// from, and acceptance is as exact as ever. Left to itself (-1) it is the lowest 32768 ids, where the vocabulary is
/// more than twice as large and the lane gains from it. Each sequence has a part of its own, whoever shares its pass.
class MtpDrafter final : public Drafter {
 public:
  /// `always` are ids that drafts may be whatever part of the vocabulary they come from: special tokens.
  explicit MtpDrafter(const Model& model, std::vector<TokenId> always = {})
      : model_(model), always_(std::move(always)) {}

  [[nodiscard]] int max_depth() const override { return model_.info().max_depth; }
  [[nodiscard]] std::unique_ptr<DraftState> begin() override;
  [[nodiscard]] std::unique_ptr<DraftState> fork(DraftState& state) override;
  void observe(Sequence& sequence, const Tensor& hidden) override;
  [[nodiscard]] std::vector<DraftBlock> propose(
      std::span<Sequence* const> sequences, std::span<const int> depths) override;

 private:
  /// What the drafts of a sequence come from now; null for every id.
  [[nodiscard]] std::shared_ptr<const VocabularySubset> vocabulary_of(Sequence& sequence) const;

  const Model& model_;
  std::vector<TokenId> always_;
};

}  // namespace foresay
