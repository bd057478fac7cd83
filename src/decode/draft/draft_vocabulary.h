// decode/draft/draft_vocabulary.h: which ids the drafts of a sequence come from.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "foresay/token.h"
#include "model/model.h"
#include "model/vocabulary_subset.h"

namespace foresay {

/// How many low ids drafts come from: `asked` where that is 0 or more, else what pays on the model's lane. 0 is the
/// whole vocabulary.
[[nodiscard]] int draft_vocabulary_low(const Model& model, int asked = -1);

/// The low ids, which byte-level BPE gives to what is frequent; ids that are always wanted; and those of the context,
/// without which names and words of the prompt could not be drafted. A function of the tokens alone, kept from round to
/// round; growing it costs the new tokens.
class DraftVocabulary {
 public:
  /// Ids below `low`, and of the others `always` and what grow() is shown.
  DraftVocabulary(int low, std::span<const TokenId> always);

  [[nodiscard]] int low() const { return subset_->low; }
  /// Takes in what is new of the tokens of the sequence.
  void grow(std::span<const TokenId> tokens);
  [[nodiscard]] const std::shared_ptr<const VocabularySubset>& subset() const { return subset_; }

 private:
  void add(std::span<const TokenId> ids);

  std::shared_ptr<const VocabularySubset> subset_;  ///< replaced, never changed: distributions refer to it
  std::vector<TokenId> always_;
  std::size_t seen_ = 0;  ///< tokens that were taken in
};

/// Every id of any of them.
[[nodiscard]] VocabularySubset union_of(std::span<const VocabularySubset* const> subsets);

/// A row of `from` reduced to the columns of `to`, whose ids `from` has.
[[nodiscard]] std::vector<float> reduce(
    std::span<const float> row, const VocabularySubset& from, const VocabularySubset& to);

}  // namespace foresay
