#include "foresay/sampling.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/error.h"

namespace foresay {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// The message of the usage error, empty when the options are valid.
std::string complaint(const SamplingOptions& options) {
  try {
    validate(options);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
}

TEST(Sampling, DefaultsAndEdgesOfTheRangesAreValid) {
  EXPECT_EQ(complaint({}), "");
  EXPECT_EQ(complaint({.temperature = 1e-6}), "");
  EXPECT_EQ(complaint({.temperature = 100, .top_k = 1'000'000, .top_p = 1e-9, .min_p = 0.999}), "");
}

TEST(Sampling, OutOfRangeOptionsAreNamedWithTheirRangeAndValue) {
  EXPECT_EQ(complaint({.top_p = 1.5}), "--top-p: expected a number in (0, 1], found 1.5");
  EXPECT_EQ(complaint({.top_p = 0}), "--top-p: expected a number in (0, 1], found 0");
  EXPECT_EQ(complaint({.min_p = 1}), "--min-p: expected a number in [0, 1), found 1");
  EXPECT_EQ(complaint({.min_p = -0.1}), "--min-p: expected a number in [0, 1), found -0.1");
  EXPECT_EQ(complaint({.top_k = -1}), "--top-k: expected a whole number >= 0 (0 is off), found -1");
  EXPECT_EQ(complaint({.temperature = -0.5}), "--temperature: expected a number >= 0, found -0.5");
}

TEST(Sampling, NotANumberIsNeverValid) {
  for (const double bad : {kNan, kInf, -kInf}) {
    EXPECT_TRUE(complaint({.temperature = bad}).starts_with("--temperature:")) << bad;
    EXPECT_TRUE(complaint({.top_p = bad}).starts_with("--top-p:")) << bad;
    EXPECT_TRUE(complaint({.min_p = bad}).starts_with("--min-p:")) << bad;
  }
}

TEST(Sampling, TheFirstBadOptionIsReported) {
  EXPECT_TRUE(complaint({.temperature = -1, .top_k = -1, .top_p = 2}).starts_with("--temperature:"));
}

TEST(Sampling, AcceptanceIsCoupledWithASeedAndRatioWithout) {
  SamplingOptions options;
  EXPECT_EQ(options.effective_acceptance(), Acceptance::ratio);
  options.seed = 0;
  EXPECT_EQ(options.effective_acceptance(), Acceptance::coupled);
  options.acceptance = Acceptance::ratio;
  EXPECT_EQ(options.effective_acceptance(), Acceptance::ratio);
  options.seed.reset();
  options.acceptance = Acceptance::coupled;
  EXPECT_EQ(options.effective_acceptance(), Acceptance::coupled);
}

}  // namespace
}  // namespace foresay
