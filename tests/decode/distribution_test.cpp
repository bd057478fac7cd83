#include "decode/sample/distribution.h"

#include <gtest/gtest.h>

namespace foresay {
namespace {

using Ids = std::vector<TokenId>;

TEST(Distribution, ProbabilityIsZeroOutsideTheSupport) {
  const Distribution d{{2, 5, 9}, {0.25, 0.5, 0.25}};
  EXPECT_EQ(d.probability(5), 0.5);
  for (const TokenId id : {-1, 0, 3, 10}) EXPECT_EQ(d.probability(id), 0) << id;
  EXPECT_EQ(d.most_likely(), 5);
  EXPECT_EQ((Distribution{{2, 5, 9}, {0.4, 0.2, 0.4}}).most_likely(), 2);
}

TEST(Residual, IsTheNormalisedPositivePartOfTheDifference) {
  const auto left = residual({{1, 2, 4, 7}, {0.5, 0.1, 0.2, 0.2}}, {{0, 1, 2, 7}, {0.3, 0.2, 0.4, 0.1}});
  EXPECT_EQ(left.ids(), (Ids{1, 4, 7}));
  EXPECT_NEAR(left.p()[0], 0.5, 1e-15);
  EXPECT_NEAR(left.p()[1], 1.0 / 3, 1e-15);
  EXPECT_NEAR(left.p()[2], 1.0 / 6, 1e-15);
}

TEST(Residual, IsPWhereNothingIsLeftOrNothingIsShared) {
  const Distribution p{{1, 2}, {0.25, 0.75}};
  EXPECT_EQ(residual(p, p).ids(), p.ids());
  EXPECT_EQ(residual(p, p).p(), p.p());
  EXPECT_EQ(residual(p, {{0, 5}, {0.5, 0.5}}).p(), p.p());
}

}  // namespace
}  // namespace foresay
