// decode/golden_rounds.h: decoding round by round, and how many drafts survive in comparison with acceptance.json.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "decode/prefill.h"
#include "decode/round.h"
#include "fixtures/golden.h"

namespace foresay {

/// One prompt, decoded.
struct Decoded {
  int prompt_length = 0;
  std::vector<TokenId> ids;  ///< what was generated
  std::vector<RoundTrace> rounds;
};

using MakeChance = std::function<std::unique_ptr<Chance>(std::uint64_t seed)>;

/// Decodes prompts together, each with its own seed: options.sampling.seed counts up from prompt to prompt.
/// `make_chance` replaces the keyed noise.
inline std::vector<Decoded> decode_together(const Model& model, Drafter* drafter,
    const std::vector<std::vector<TokenId>>& prompts, DecodeOptions options, const MakeChance& make_chance = nullptr) {
  std::vector<Decoded> decoded(prompts.size());
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<Sequence*> running;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto seed = options.sampling.seed;
    auto sequence =
        std::make_unique<Sequence>(model, prompts[i], options, make_chance && seed ? make_chance(*seed) : nullptr);
    sequence->on_round = [&trace = decoded[i].rounds](const RoundTrace& round) { trace.push_back(round); };
    prefill(model, drafter, *sequence, 0);
    running.push_back(sequence.get());
    sequences.push_back(std::move(sequence));
    if (seed) options.sampling.seed = *seed + 1;
  }
  while (!running.empty()) {
    std::erase_if(running, [](const Sequence* sequence) { return sequence->finish != Finish::running; });
    round(model, drafter, running);
  }
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    decoded[i].prompt_length = sequences[i]->prompt_length;
    decoded[i].ids.assign(sequences[i]->tokens.begin() + sequences[i]->prompt_length, sequences[i]->tokens.end());
  }
  return decoded;
}

/// The 24 prompts behind every acceptance.json, and what they are continued with: 96 tokens, and one more so that no
/// counted round is cut short.
inline std::vector<std::vector<TokenId>> acceptance_prompts() {
  const nlohmann::json all = read_golden_json("acceptance_prompts.json");
  std::vector<std::vector<TokenId>> prompts;
  for (const auto& prompt : all.at("prompts")) prompts.push_back(prompt.at("ids").get<std::vector<TokenId>>());
  return prompts;
}
inline constexpr int kAcceptanceTokens = 97;

/// Survival by draft position.
struct AcceptanceRates {
  double rounds = 0;
  std::vector<double> per_round;  ///< [depth] share of rounds in which this draft survived
  double tokens_per_round = 1;
};

/// The rounds that the reference counts: those that begin with at most 93 generated tokens.
inline AcceptanceRates measure(const std::vector<Decoded>& all, int depth) {
  constexpr int kLastStart = 93;
  AcceptanceRates rates{0, std::vector<double>(static_cast<std::size_t>(depth)), 1};
  for (const Decoded& one : all) {
    for (const RoundTrace& round : one.rounds) {
      if (round.known - one.prompt_length > kLastStart) continue;
      EXPECT_EQ(static_cast<int>(round.draft.size()), depth);
      ++rates.rounds;
      for (int i = 0; i < round.accepted; ++i) ++rates.per_round[static_cast<std::size_t>(i)];
    }
  }
  for (double& rate : rates.per_round) {
    rate /= rates.rounds;
    rates.tokens_per_round += rate;
  }
  return rates;
}

inline AcceptanceRates golden_rates(const nlohmann::json& depth) {
  return {depth.at("rounds").get<double>(), depth.at("accepted_per_round").get<std::vector<double>>(),
      depth.at("tokens_per_round").get<double>()};
}

/// How live rates are compared with the reference's.
enum class Sample {
  same,  ///< greedy runs of two implementations part only at ties, which move a round or two in some hundreds
  own,   ///< sampled runs: every rate lies within three standard errors, and both runs have theirs
};

inline void expect_acceptance(const AcceptanceRates& live, const AcceptanceRates& golden, Sample sample) {
  constexpr double kTies = 0.005;
  ASSERT_EQ(live.per_round.size(), golden.per_round.size());
  const double inverse = 1 / live.rounds + 1 / golden.rounds;
  // Survival is nested, so the square of the accepted length is the sum of 2i - 1 over accepted positions i.
  double mean = 0, square = 0;
  std::string text;
  const auto compare = [&](double got, double want, double deviation, double ties, const std::string& what) {
    const double error = std::sqrt(deviation * inverse);
    EXPECT_NEAR(got, want, sample == Sample::same ? ties : 3 * error) << what;
    text +=
        fmt::format("{:.4f} for {:.4f} ({:+.1f} standard errors); ", got, want, error > 0 ? (got - want) / error : 0);
  };
  for (std::size_t i = 0; i < golden.per_round.size(); ++i) {
    const double pooled =
        (live.per_round[i] * live.rounds + golden.per_round[i] * golden.rounds) / (live.rounds + golden.rounds);
    mean += pooled;
    square += static_cast<double>(2 * i + 1) * pooled;
    compare(live.per_round[i], golden.per_round[i], pooled * (1 - pooled), kTies, fmt::format("draft {}", i + 1));
  }
  compare(live.tokens_per_round, golden.tokens_per_round, square - mean * mean, 2 * kTies, "tokens per round");
  ::testing::Test::RecordProperty("rounds", fmt::format("{} for {}", live.rounds, golden.rounds));
  ::testing::Test::RecordProperty("rates", text);
}

}  // namespace foresay
