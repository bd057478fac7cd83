// decode/draft/draw.h: from rows of head logits to drafts: which ids they come from, and the draw. Shared by the
// drafters of MTP heads.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "decode/draft/draft_vocabulary.h"
#include "decode/draft/drafter.h"
#include "foresay/token.h"
#include "model/model.h"
#include "model/vocabulary_subset.h"

namespace foresay {

/// A sequence that drafts in this round.
struct Drafting {
  Sequence* sequence = nullptr;
  DraftBlock* block = nullptr;
  int depth = 0;                                       ///< most tokens of the block
  std::shared_ptr<const VocabularySubset> vocabulary;  ///< the ids its drafts come from; null is all of them
};

/// What the drafts of a sequence come from now; null for every id. `own` is the sequence's and grows with it; `always`
/// are ids that drafts may be in any case.
///
/// The vocabulary matrix is a large part of what a head costs, and a draft is verified wherever it came from. So the
/// head's rows may be those of a part of the vocabulary (DecodeOptions::draft_vocabulary): the low ids, special tokens,
/// ends of turns, and the ids of the context. q is then a distribution over that part, the one that the draft was drawn
/// from, and acceptance is as exact as ever. Left to itself (-1) it is the lowest 32768 ids, where the vocabulary is
/// more than twice as large and the lane gains from it. Each sequence has a part of its own, whoever shares its pass.
[[nodiscard]] std::shared_ptr<const VocabularySubset> vocabulary_of(
    const Model& model, std::span<const TokenId> always, const Sequence& sequence, std::optional<DraftVocabulary>& own);

/// The columns that the head makes for sequences that share its passes: any that one of them draws from. Nothing where
/// one draws from every id.
[[nodiscard]] std::optional<VocabularySubset> columns_of(std::span<const Drafting> all);

/// Draws each one's next token from its row of `logits` [all.size(), V], or of `columns`, of which it sees its own.
/// Returns the indices of those that go on: they have drawn a token, and fewer than their depth. Where no token can be
/// drawn from a row its block ends, and a broken head costs speed, never the answer.
[[nodiscard]] std::vector<int> draw(
    Ops& ops, const Tensor& logits, const std::optional<VocabularySubset>& columns, std::span<const Drafting> all);

}  // namespace foresay
