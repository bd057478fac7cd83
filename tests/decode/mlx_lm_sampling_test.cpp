// The whole chain against mlx-lm's: 200 random rows, histories and settings (tools/make_sampling_golden.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "decode/sample/processors.h"
#include "decode/sample/shape.h"

namespace foresay {
namespace {

using Ids = std::vector<TokenId>;

SamplingOptions options_of(const nlohmann::json& each) {
  SamplingOptions options;
  each.at("temperature").get_to(options.temperature);
  each.at("top_k").get_to(options.top_k);
  each.at("top_p").get_to(options.top_p);
  each.at("min_p").get_to(options.min_p);
  each.at("min_keep").get_to(options.min_keep);
  each.at("xtc_probability").get_to(options.xtc_probability);
  each.at("xtc_threshold").get_to(options.xtc_threshold);
  each.at("xtc_exempt").get_to(options.xtc_exempt);
  each.at("repetition_penalty").get_to(options.repetition_penalty);
  each.at("repetition_window").get_to(options.repetition_window);
  each.at("presence_penalty").get_to(options.presence_penalty);
  each.at("presence_window").get_to(options.presence_window);
  each.at("frequency_penalty").get_to(options.frequency_penalty);
  each.at("frequency_window").get_to(options.frequency_window);
  for (const auto& [id, bias] : each.at("logit_bias").items()) options.logit_bias[std::stoi(id)] = bias;
  return options;
}

// Within 1e-5: mlx-lm computes in float32. A case whose filter edge is nearer than 1e-6 to an id may differ in support.
TEST(MlxLm, MakesTheSameDistributions) {
  std::ifstream file(FORESAY_TEST_DATA "/sampling/mlx_lm.json");
  ASSERT_TRUE(file.is_open());
  const auto golden = nlohmann::json::parse(file);
  int near_ties = 0, xtc_cases = 0, penalised = 0;
  for (const auto& each : golden["cases"]) {
    const SamplingOptions options = options_of(each);
    validate(options);
    const Ids history = each["history"].get<Ids>();
    SCOPED_TRACE(each.dump().substr(0, 400));
    auto row = golden["rows"][each["row"].get<std::size_t>()].get<std::vector<float>>();
    // The history in two parts, as a drafted row sees it.
    const std::size_t known = history.size() / 2;
    process(row, {std::span(history).first(known), std::span(history).subspan(known)}, options, {});
    const auto found = shape(row, options, options.xtc_probability > 0);
    xtc_cases += options.xtc_probability > 0 ? 1 : 0;
    penalised += has_processors(options, {}) ? 1 : 0;
    if (each["border"].get<double>() < 1e-6) {
      ++near_ties;
      continue;
    }
    ASSERT_EQ(found.ids(), each["ids"].get<Ids>());
    const auto logp = each["logp"].get<std::vector<double>>();
    const double peak = std::ranges::max(logp);
    double total = 0;
    for (const double x : logp) total += std::exp(x - peak);
    for (std::size_t i = 0; i < logp.size(); ++i) ASSERT_NEAR(found.p()[i], std::exp(logp[i] - peak) / total, 1e-5);
  }
  EXPECT_EQ(golden["cases"].size(), 200u);
  EXPECT_LE(near_ties, 25);
  EXPECT_GE(xtc_cases, 50);
  EXPECT_GE(penalised, 150);
}

}  // namespace
}  // namespace foresay
