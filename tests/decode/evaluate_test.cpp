// Rows of a head for given ids, against the fixture's arithmetic.
#include "decode/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "fixtures/prefix_model.h"

namespace foresay {
namespace {

// Identical. Row t of step s is row t of layer s - 1, which reads the token at t + s and, under the chained scheme,
// what the layer before left at row t.
TEST(Evaluate, StepsOfDistinctLayersAreRowsOfTheirLayers) {
  for (const HeadScheme scheme : {HeadScheme::chained, HeadScheme::parallel}) {
    const PrefixModel model(scheme);
    for (const int positions : {1, 2, 3, 4, 5, 40}) {
      std::vector<TokenId> ids;
      for (int i = 0; i < positions; ++i) ids.push_back(i * (i + 3) % PrefixModel::kVocab);
      for (const int depth : {0, 1, 2, 3, 8}) {
        const Evaluation got = evaluate(model, ids, depth, /*chunk=*/7);
        const int steps = std::min({depth, PrefixModel::kDistinctLayers, positions - 1});
        ASSERT_EQ(static_cast<int>(got.mtp_logits.size()), steps);
        std::vector<prefix::Hidden> trunk;
        std::uint64_t state = 0;
        for (const TokenId id : ids) trunk.push_back(prefix::hidden_of(state = prefix::extend(state, id)));
        std::vector<prefix::HeadRow> below;
        for (int s = 1; s <= steps; ++s) {
          std::vector<prefix::HeadRow> layer;
          std::vector<float> want;
          for (int t = 0; t + s < positions; ++t) {
            const auto row = static_cast<std::size_t>(t);
            const auto input = s > 1 && scheme == HeadScheme::chained ? below[row].left : trunk[row];
            layer.push_back(prefix::head_row(scheme, s - 1, layer, input, ids[static_cast<std::size_t>(t + s)]));
            want.resize(want.size() + prefix::kVocab);
            prefix::write_head_logits(layer.back().left, want.data() + want.size() - prefix::kVocab);
          }
          EXPECT_EQ(got.mtp_logits[static_cast<std::size_t>(s - 1)], want) << "step " << s << " of " << positions;
          below = std::move(layer);
        }
      }
    }
  }
}

}  // namespace
}  // namespace foresay
