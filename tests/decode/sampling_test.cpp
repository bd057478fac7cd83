#include "foresay/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(Sampling, ProcessorsOutOfRangeAreNamedWithTheirRangeAndValue) {
  EXPECT_EQ(complaint({.min_keep = 0}), "--min-tokens-to-keep: expected a whole number >= 1, found 0");
  EXPECT_EQ(complaint({.xtc_probability = 1.5}), "--xtc-probability: expected a number in [0, 1], found 1.5");
  EXPECT_EQ(complaint({.xtc_threshold = 0.6}), "--xtc-threshold: expected a number in [0, 0.5], found 0.6");
  EXPECT_EQ(complaint({.repetition_penalty = 0}), "--repetition-penalty: expected a number > 0 (1 is off), found 0");
  EXPECT_EQ(complaint({.presence_penalty = 101}), "--presence-penalty: expected a number from -100 to 100, found 101");
  EXPECT_EQ(
      complaint({.frequency_penalty = -101}), "--frequency-penalty: expected a number from -100 to 100, found -101");
  EXPECT_EQ(complaint({.repetition_window = -1}),
      "--repetition-context-size: expected a whole number >= 0 (0 is everything), found -1");
  EXPECT_TRUE(complaint({.presence_window = -1}).starts_with("--presence-context-size:"));
  EXPECT_TRUE(complaint({.frequency_window = -1}).starts_with("--frequency-context-size:"));
  EXPECT_EQ(complaint({.logit_bias = {{-3, 1.0f}}}), "--logit-bias: expected a token id >= 0, found -3");
  EXPECT_TRUE(complaint({.bad_words = {{}}}).starts_with("--bad-word:"));
  EXPECT_TRUE(complaint({.bad_words = {{4, -1}}}).starts_with("--bad-word:"));
  EXPECT_TRUE(complaint({.xtc_exempt = {-1}}).find("xtc") != std::string::npos);
}

TEST(Sampling, TheOrderHasEveryStepOnce) {
  const SamplingOptions defaults;
  auto missing = defaults, twice = defaults, shuffled = defaults;
  missing.order.pop_back();
  twice.order[0] = twice.order[1];
  std::reverse(shuffled.order.begin(), shuffled.order.end());
  EXPECT_TRUE(complaint(missing).starts_with("--sampler-order:"));
  EXPECT_TRUE(complaint(twice).starts_with("--sampler-order:"));
  EXPECT_EQ(complaint(shuffled), "");
}

TEST(Sampling, NotANumberIsNeverValid) {
  for (const double bad : {kNan, kInf, -kInf}) {
    EXPECT_TRUE(complaint({.xtc_probability = bad}).starts_with("--xtc-probability:")) << bad;
    EXPECT_TRUE(complaint({.xtc_threshold = bad}).starts_with("--xtc-threshold:")) << bad;
    EXPECT_TRUE(complaint({.repetition_penalty = bad}).starts_with("--repetition-penalty:")) << bad;
    EXPECT_TRUE(complaint({.presence_penalty = bad}).starts_with("--presence-penalty:")) << bad;
    EXPECT_TRUE(complaint({.frequency_penalty = bad}).starts_with("--frequency-penalty:")) << bad;
    EXPECT_TRUE(complaint({.logit_bias = {{1, static_cast<float>(bad)}}}).starts_with("--logit-bias:")) << bad;
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
