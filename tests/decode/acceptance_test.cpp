// How many drafts of the trained heads survive, against what a reference implementation measured.
#include <gtest/gtest.h>

#include "decode/golden_rounds.h"
#include "fixtures/drafters.h"

namespace foresay {
namespace {

class AcceptanceRate : public ::testing::TestWithParam<std::tuple<std::string, double, int>> {};

TEST_P(AcceptanceRate, IsTheReferences) {
  const auto& [name, temperature, depth] = GetParam();
  const OpenedModel model(bundled_model(name));
  HeadDrafter drafter(*model);
  DecodeOptions options;
  options.depth = depth;
  options.max_tokens = kAcceptanceTokens;
  options.sampling.temperature = temperature;
  options.sampling.seed = 1;
  options.sampling.acceptance = Acceptance::ratio;
  const auto decoded = decode_together(*model, &drafter, acceptance_prompts(), options);
  const auto golden = read_golden_json(name + "/acceptance.json").at("right_wiring");
  const auto& mode = golden.at(temperature == 0 ? "greedy" : "sampled_temperature_0.8");
  expect_acceptance(measure(decoded, depth), golden_rates(mode.at("depth_" + std::to_string(depth))),
      temperature == 0 ? Sample::same : Sample::own);
}

std::string rate_name(const ::testing::TestParamInfo<AcceptanceRate::ParamType>& test) {
  const auto& [name, temperature, depth] = test.param;
  return fmt::format("{}_{}_depth_{}", test_name(name), temperature == 0 ? "greedy" : "sampled", depth);
}

INSTANTIATE_TEST_SUITE_P(, AcceptanceRate,
    ::testing::Combine(::testing::ValuesIn(kTrainedGoldens), ::testing::Values(0.0, 0.8), ::testing::Values(1, 2, 3)),
    rate_name);

}  // namespace
}  // namespace foresay
