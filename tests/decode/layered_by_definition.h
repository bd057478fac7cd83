// decode/layered_by_definition.h: what the layers of a distinct head hold and draft from, computed from scratch by the
// definition in decode/draft/layered_drafter.h, over the arithmetic of PrefixModel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decode/draft/draft_vocabulary.h"
#include "decode/next_token.h"
#include "fixtures/drafters.h"
#include "fixtures/prefix_model.h"

namespace foresay {

/// What a head could get wrong.
enum class Fault {
  none,
  other_source,    ///< the trunk's hidden state where the layer below is due, and the other way round
  token_behind,    ///< layers behind the first read the token before theirs
  stale_row,       ///< the last certain row of the second layer still reads a draft that was rejected
  missing_row,     ///< the second layer has no row 0
  skipped_output,  ///< layers behind the first read the hidden state of the row before
};

/// Rows of every layer at positions below `rows`, as far as `tokens` go: row p of layer i reads the token p + 1 + i and
/// what the scheme says.
[[nodiscard]] inline std::vector<std::vector<prefix::HeadRow>> rows_by_definition(
    HeadScheme scheme, const Ids& tokens, int rows, Fault fault = Fault::none) {
  std::vector<prefix::Hidden> trunk;
  std::uint64_t state = 0;
  for (const TokenId token : tokens) trunk.push_back(prefix::hidden_of(state = prefix::extend(state, token)));
  const bool is_chained = (scheme == HeadScheme::chained) != (fault == Fault::other_source);
  std::vector<std::vector<prefix::HeadRow>> layers(PrefixModel::kDistinctLayers);
  for (int i = 0; i < PrefixModel::kDistinctLayers; ++i) {
    auto& layer = layers[static_cast<std::size_t>(i)];
    for (int p = 0; p < rows && p + 1 + i < static_cast<int>(tokens.size()); ++p) {
      const int source = i > 0 && fault == Fault::skipped_output ? std::max(0, p - 1) : p;
      const prefix::Hidden input = i > 0 && is_chained
                                       ? layers[static_cast<std::size_t>(i - 1)][static_cast<std::size_t>(source)].left
                                       : trunk[static_cast<std::size_t>(source)];
      TokenId token = tokens[static_cast<std::size_t>(i > 0 && fault == Fault::token_behind ? p + i : p + 1 + i)];
      if (i == 1 && p == rows - 2 && fault == Fault::stale_row) token = wrong_for(token);
      std::span<const prefix::HeadRow> before = layer;
      if (i == 1 && fault == Fault::missing_row && !before.empty()) before = before.subspan(1);
      layer.push_back(prefix::head_row(scheme, i, before, input, token));
    }
  }
  return layers;
}

/// What a block drew from, by definition: draft i comes from the newest row of layer i.
[[nodiscard]] inline std::vector<Distribution> q_by_definition(
    HeadScheme scheme, Sequence& sequence, const Ids& drafts, const Ids& always, Fault fault = Fault::none) {
  Ids text = sequence.tokens;
  const int rows = static_cast<int>(text.size()) - 1;
  text.insert(text.end(), drafts.begin(), drafts.end());
  const auto layers = rows_by_definition(scheme, text, rows, fault);
  auto part = std::make_shared<VocabularySubset>();
  part->low = sequence.options.draft_vocabulary;
  for (TokenId id = part->low; id < PrefixModel::kVocab; ++id) {
    const auto is_in = [id](const Ids& ids) { return std::ranges::find(ids, id) != ids.end(); };
    if (is_in(sequence.tokens) || is_in(always)) part->extra.push_back(id);
  }
  const VocabularySubset whole{PrefixModel::kVocab, {}};
  std::vector<Distribution> q;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    std::vector<float> logits(PrefixModel::kVocab);
    prefix::write_head_logits(layers[i].back().left, logits.data());
    const bool is_whole = part->low == 0;
    LogitRow row(is_whole ? std::move(logits) : foresay::reduce(logits, whole, *part));
    if (!is_whole) row.vocabulary = part;
    std::string problem;
    q.push_back(next_distribution(sequence, std::span(drafts).first(i), std::move(row), problem).value());
  }
  return q;
}

}  // namespace foresay
