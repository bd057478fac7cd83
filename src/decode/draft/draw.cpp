#include "decode/draft/draw.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "decode/next_token.h"
#include "decode/sequence.h"

namespace foresay {
namespace {

/// False when no token can be drawn from the row.
bool draw_one(Sequence& sequence, DraftBlock& block, LogitRow row) {
  std::string problem;
  auto q = next_distribution(sequence, block.tokens, std::move(row), problem);
  if (!q) return false;
  const auto index = static_cast<std::uint32_t>(sequence.generated() + static_cast<int>(block.tokens.size()));
  block.q.push_back(std::move(*q));
  block.tokens.push_back(sequence.chance->draw(block.q.back(), index, draft_purpose(sequence.options.sampling)));
  return true;
}

}  // namespace

std::shared_ptr<const VocabularySubset> vocabulary_of(const Model& model, std::span<const TokenId> always,
    const Sequence& sequence, std::optional<DraftVocabulary>& own) {
  const DecodeOptions& options = sequence.options;
  const int vocab = model.info().vocab, low = draft_vocabulary_low(model, options.draft_vocabulary);
  if (low == 0) return nullptr;
  if (!own || own->low() != low) {
    std::vector<TokenId> ids(always.begin(), always.end());
    ids.insert(ids.end(), options.stop_ids.begin(), options.stop_ids.end());
    for (const auto& [id, bias] : options.sampling.logit_bias) ids.push_back(id);
    std::erase_if(ids, [&](TokenId id) { return id < 0 || id >= vocab; });
    own.emplace(low, ids);
  }
  own->grow(sequence.tokens);
  return own->subset();
}

std::optional<VocabularySubset> columns_of(std::span<const Drafting> all) {
  std::vector<const VocabularySubset*> subsets;
  for (const Drafting& each : all) {
    if (!each.vocabulary) return std::nullopt;
    subsets.push_back(each.vocabulary.get());
  }
  return union_of(subsets);
}

std::vector<int> draw(
    Ops& ops, const Tensor& logits, const std::optional<VocabularySubset>& columns, std::span<const Drafting> all) {
  const std::span<const float> values = ops.read(logits);
  const auto width = static_cast<std::size_t>(logits.width);
  const VocabularySubset whole{logits.width, {}};
  const VocabularySubset& made = columns ? *columns : whole;
  std::vector<int> going_on;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Drafting& each = all[i];
    LogitRow row(values.subspan(i * width, width), logits.storage);  // q goes on looking at it
    if (each.vocabulary && each.vocabulary->size() != made.size())
      row = LogitRow(reduce(row.logits, made, *each.vocabulary));
    row.vocabulary = each.vocabulary;
    if (!draw_one(*each.sequence, *each.block, std::move(row))) continue;
    if (static_cast<int>(each.block->tokens.size()) < each.depth) going_on.push_back(static_cast<int>(i));
  }
  return going_on;
}

}  // namespace foresay
