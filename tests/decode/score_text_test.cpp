// Scoring a text: against evaluate() and plain loops, against the reference's logits, and what it refuses.
#include "decode/score/score_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/error.h"
#include "decode/evaluate.h"
#include "decode/score/compare_rows.h"
#include "fixtures/golden.h"
#include "fixtures/prefix_model.h"

namespace foresay {
namespace {

/// Softmax by its definition.
std::vector<double> softmax(std::span<const float> logits) {
  std::vector<double> p(logits.begin(), logits.end());
  const double peak = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - peak);
  for (double& x : p) x /= sum;
  return p;
}
std::span<const float> row(const std::vector<float>& values, int width, std::size_t index) {
  return std::span(values).subspan(index * static_cast<std::size_t>(width), static_cast<std::size_t>(width));
}
std::ptrdiff_t peak(const std::vector<double>& p) {
  return std::max_element(p.begin(), p.end()) - p.begin();
}

/// score_text by its definition: evaluate() for every window, then plain loops.
TextScore score_by_definition(const Model& model, std::span<const TokenId> ids, std::size_t window, int depth) {
  TextScore score;
  score.steps.resize(static_cast<std::size_t>(depth));
  const int vocab = model.info().vocab;
  for (std::size_t first = 0; first < ids.size(); first += window, ++score.windows) {
    const auto part = ids.subspan(first, std::min(window, ids.size() - first));
    const Evaluation all = evaluate(model, part, depth);
    for (std::size_t t = 0; t < part.size(); ++t, ++score.tokens) {
      const auto p = softmax(row(all.logits, vocab, t));
      if (t + 1 < part.size()) {
        score.nats -= std::log(p[static_cast<std::size_t>(part[t + 1])]);
        score.correct += peak(p) == part[t + 1] ? 1 : 0;
        ++score.predicted;
      }
      for (std::size_t s = 1; s <= all.mtp_logits.size() && s <= t; ++s) {  // the block that started s rows before
        const auto q = softmax(row(all.mtp_logits[s - 1], vocab, t - s));
        StepScore& step = score.steps[s - 1];
        ++step.positions;
        step.agreed += peak(p) == peak(q) ? 1 : 0;
        for (std::size_t i = 0; i < p.size(); ++i) step.overlap += std::min(p[i], q[i]);
      }
    }
  }
  return score;
}

void expect_equal(const TextScore& got, const TextScore& want) {
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.windows, want.windows);
  EXPECT_EQ(got.predicted, want.predicted);
  EXPECT_EQ(got.correct, want.correct);
  EXPECT_NEAR(got.nats, want.nats, 1e-9 * std::max(1.0, want.nats));  // sums of doubles in another order
  ASSERT_EQ(got.steps.size(), want.steps.size());
  for (std::size_t s = 0; s < got.steps.size(); ++s) {
    EXPECT_EQ(got.steps[s].positions, want.steps[s].positions) << s;
    EXPECT_EQ(got.steps[s].agreed, want.steps[s].agreed) << s;
    EXPECT_NEAR(got.steps[s].overlap, want.steps[s].overlap, 1e-9 * want.steps[s].overlap) << s;
    EXPECT_EQ(got.steps[s].unusable, 0) << s;
  }
}

std::vector<TokenId> prefix_text(std::size_t size) {
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < size; ++i) ids.push_back(static_cast<TokenId>((i * i + 3 * i) % PrefixModel::kVocab));
  return ids;
}

TEST(ScoreText, IsTheDefinitionForEveryWindowDepthAndChunk) {
  const auto ids = prefix_text(75);
  for (const HeadScheme scheme : {HeadScheme::reused, HeadScheme::chained, HeadScheme::parallel}) {
    const PrefixModel model(scheme);
    for (const int window : {2, 3, 25, 37, 74, 75, 76, 512}) {
      for (const int depth : {0, 1, 2, 3, 8}) {
        const int steps = std::min({depth, model.info().max_depth, std::min(window, 75) - 1});
        const auto want = score_by_definition(model, ids, static_cast<std::size_t>(window), steps);
        for (const int chunk : {0, 1, 2, 7}) {
          SCOPED_TRACE(
              fmt::format("scheme {} window {} depth {} chunk {}", static_cast<int>(scheme), window, depth, chunk));
          expect_equal(score_text(model, ids, {.window = window, .depth = depth, .chunk = chunk}), want);
        }
      }
    }
  }
}

TEST(ScoreText, IsTheDefinitionOnTrainedModels) {
  for (const auto& name : kTrainedGoldens) {
    const OpenedModel model(bundled_model(name));
    const auto ids = read_golden(name + "/prompt_00").continued(40);
    expect_equal(
        score_text(*model, ids, {.window = 50, .depth = 3, .chunk = 16}), score_by_definition(*model, ids, 50, 3));
  }
}

// The last 8 rows of a golden are the reference's own: so are 7 predictions of its prompt.
TEST(ScoreText, GivesThePerplexityOfTheReference) {
  for (const auto& name : golden_names(kTrainedGoldens)) {
    SCOPED_TRACE(name);
    const GoldenPrompt golden = read_golden(name);
    const OpenedModel model(golden.checkpoint);
    const int vocab = model->info().vocab, size = static_cast<int>(golden.ids.size());
    const auto nats = [&](int count) {
      return score_text(
          *model, std::span(golden.ids).first(static_cast<std::size_t>(count)), {.window = size, .depth = 0})
          .nats;
    };
    double want = 0;
    for (std::size_t i = 0; i + 1 < golden.positions.size(); ++i) {
      const auto next = golden.ids.at(static_cast<std::size_t>(golden.positions[i]) + 1);
      want -= std::log(softmax(row(golden.tensors.at("logits"), vocab, i))[static_cast<std::size_t>(next)]);
    }
    const auto predictions = static_cast<double>(golden.positions.size() - 1);
    // Logits agree within 2e-4, so a mean log-probability does within twice that.
    EXPECT_NEAR((nats(size) - nats(golden.positions.front() + 1)) / predictions, want / predictions, 4e-4);
  }
}

TEST(ScoreText, ShowsEveryRowOnceInOrder) {
  const PrefixModel model;
  const auto ids = prefix_text(40);
  std::vector<float> seen;
  std::size_t next = 0;
  ScoreOptions options = {.window = 16, .depth = 2, .chunk = 5};
  options.on_row = [&](std::size_t token, const LogRow& each) {
    EXPECT_EQ(token, next++);
    seen.insert(seen.end(), each.logits.begin(), each.logits.end());
  };
  (void)score_text(model, ids, options);
  std::vector<float> want;
  for (const std::size_t first : {0, 16, 32}) {
    const auto part = std::span(ids).subspan(first, std::min<std::size_t>(16, ids.size() - first));
    const auto logits = evaluate(model, part, 0).logits;
    want.insert(want.end(), logits.begin(), logits.end());
  }
  EXPECT_EQ(seen, want);
}

TEST(ScoreText, EndsWhereTheCallerSaysSo) {
  const PrefixModel model;
  std::atomic<bool> cancel{false};
  ScoreOptions options = {.window = 10, .chunk = 5, .cancel = &cancel};
  std::size_t rows = 0;
  options.on_row = [&](std::size_t, const LogRow&) { cancel = ++rows == 15; };
  const TextScore score = score_text(model, prefix_text(100), options);
  EXPECT_TRUE(score.cancelled);
  EXPECT_EQ(rows, 15u);
}

TEST(ScoreText, RefusesWhatCannotBeScored) {
  const PrefixModel model;
  const auto refused = [&](const std::vector<TokenId>& ids, int window, const std::string& part) {
    try {
      (void)score_text(model, ids, {.window = window});
      ADD_FAILURE() << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  refused({}, 8, "found 0");
  refused({1}, 8, "at least 2");
  refused({1, 2}, 1, "found 1");
  refused({1, 2}, 513, "512");
  refused({1, 16}, 8, "16");
  refused({1, -1}, 8, "-1");
}

TEST(LogRow, RefusesRowsThatAreNoDistribution) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::string problem;
  EXPECT_FALSE(log_row(std::array{1.0f, NAN}, problem));
  EXPECT_NE(problem.find("id 1"), std::string::npos) << problem;
  EXPECT_FALSE(log_row(std::array{kInfinity, 0.0f}, problem));
  EXPECT_FALSE(log_row(std::array{-kInfinity, -kInfinity}, problem));
  EXPECT_TRUE(log_row(std::array{-kInfinity, 0.0f}, problem));
  EXPECT_EQ(problem, "");
}

TEST(LogRow, MaskedIdsHaveNoMass) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::string problem;
  const std::array a = {0.0f, -kInfinity, 0.0f}, b = {0.0f, 0.0f, 0.0f};
  const LogRow p = log_row(a, problem).value(), q = log_row(b, problem).value();
  EXPECT_NEAR(divergence(p, q), std::log(1.5), 1e-15);
  EXPECT_EQ(divergence(q, p), std::numeric_limits<double>::infinity());
  EXPECT_NEAR(overlap(p, q), 2.0 / 3, 1e-15);
  EXPECT_EQ(divergence(p, p), 0);
  EXPECT_NEAR(overlap(p, p), 1, 1e-15);
}

TEST(RowComparison, PercentileIsTheNearestRank) {
  RowComparison comparison;
  std::string problem;
  const std::array reference = {0.0f, 0.0f};
  const LogRow p = log_row(reference, problem).value();
  for (int i = 0; i < 200; ++i) {  // ever further apart; the 198th of 200 is the 99th percentile
    const std::array moved = {0.01f * static_cast<float>(i), 0.0f};
    comparison.add(p, log_row(moved, problem).value(), 1);
  }
  const auto figures = comparison.figures();
  const auto kl = [](double x) { return std::log(0.5 * (std::exp(x) + 1)) - 0.5 * x; };
  EXPECT_NEAR(figures.kl_99, kl(0.01f * 197.0f), 1e-6);
  EXPECT_NEAR(figures.kl_max, kl(0.01f * 199.0f), 1e-6);
  EXPECT_NEAR(figures.logit_difference, 1.99, 1e-6);
  EXPECT_EQ(figures.rows, 200);
  EXPECT_EQ(figures.agreement, 1);  // the lowest of equals is best
  EXPECT_NEAR(figures.reference_perplexity, 2, 1e-12);
}

}  // namespace
}  // namespace foresay
