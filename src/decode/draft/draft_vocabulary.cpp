#include "decode/draft/draft_vocabulary.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace foresay {

int draft_vocabulary_low(const Model& model, int asked) {
  constexpr int kLowIds = 32768;  // of 248320 of Qwen3.5 these make up nearly all of a text
  const int vocab = model.info().vocab, low = asked >= 0 ? asked : kLowIds;
  const bool pays = asked >= 0 || (vocab > 2 * low && model.ops().gains_from_subset());
  return pays && low < vocab ? low : 0;
}

namespace {

void sort_unique(std::vector<TokenId>& ids) {
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
}

}  // namespace

DraftVocabulary::DraftVocabulary(int low, std::span<const TokenId> always)
    : subset_(std::make_shared<const VocabularySubset>(VocabularySubset{low, {}})),
      always_(always.begin(), always.end()) {
  add(always_);
}

void DraftVocabulary::grow(std::span<const TokenId> tokens) {
  if (tokens.size() < seen_) *this = DraftVocabulary(low(), std::vector(always_));  // another text
  add(tokens.subspan(seen_));
  seen_ = tokens.size();
}

void DraftVocabulary::add(std::span<const TokenId> ids) {
  const std::vector<TokenId>& known = subset_->extra;
  std::vector<TokenId> fresh;
  for (const TokenId id : ids) {
    if (id >= subset_->low && !std::ranges::binary_search(known, id)) fresh.push_back(id);
  }
  if (fresh.empty()) return;
  sort_unique(fresh);
  VocabularySubset larger{subset_->low, {}};
  larger.extra.reserve(known.size() + fresh.size());
  std::ranges::merge(known, fresh, std::back_inserter(larger.extra));
  subset_ = std::make_shared<const VocabularySubset>(std::move(larger));
}

VocabularySubset union_of(std::span<const VocabularySubset* const> subsets) {
  VocabularySubset all;
  for (const VocabularySubset* each : subsets) all.low = std::max(all.low, each->low);
  for (const VocabularySubset* each : subsets) {
    const auto first = std::ranges::lower_bound(each->extra, all.low);
    all.extra.insert(all.extra.end(), first, each->extra.end());
  }
  sort_unique(all.extra);
  return all;
}

std::vector<float> reduce(std::span<const float> row, const VocabularySubset& from, const VocabularySubset& to) {
  std::vector<float> values(row.begin(), row.begin() + to.low);
  values.reserve(static_cast<std::size_t>(to.size()));
  for (const TokenId id : to.extra) values.push_back(row[from.column(id).value()]);
  return values;
}

}  // namespace foresay
