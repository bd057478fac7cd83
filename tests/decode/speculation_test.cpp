// Greedy text and every round of greedy self-speculation against reference implementations.
#include <gtest/gtest.h>

#include <algorithm>

#include "decode/evaluate.h"
#include "decode/generate.h"
#include "decode/golden_rounds.h"
#include "fixtures/drafters.h"
#include "fixtures/scripted_model.h"

namespace foresay {
namespace {

/// How many leading ids agree, out of the first `count`.
std::size_t common_prefix(const std::vector<TokenId>& a, const std::vector<TokenId>& b, std::size_t count) {
  count = std::min({count, a.size(), b.size()});
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(count), b.begin()).first - a.begin());
}

class GreedyText : public ::testing::TestWithParam<std::string> {};

TEST_P(GreedyText, IsTheReferencesAtAnyDepth) {
  const GoldenPrompt golden = read_golden(GetParam());
  const OpenedModel model(golden.checkpoint);
  HeadDrafter drafter(*model);
  GenerateRequest request;
  request.prompt = golden.ids;
  request.options.max_tokens = static_cast<int>(golden.greedy_ids.size());
  std::vector<TokenId> plain;
  for (const int depth : {0, 3}) {
    request.options.depth = depth;
    const Generation result = generate(*model, &drafter, request);
    EXPECT_EQ(result.stats.depth, depth);
    ASSERT_EQ(result.ids.size(), golden.greedy_ids.size());
    EXPECT_EQ(common_prefix(result.ids, golden.greedy_ids, golden.decided()), golden.decided()) << "depth " << depth;
    if (depth == 0) plain = result.ids;
    EXPECT_EQ(result.ids, plain);
  }
  if (!golden.json.contains("mlx_float32_greedy_ids")) return;
  // mlx-lm itself, on the packed weights.
  const auto ids = golden.json.at("mlx_float32_greedy_ids").get<std::vector<TokenId>>();
  EXPECT_EQ(common_prefix(plain, ids, golden.decided()), golden.decided());
}

std::vector<std::string> all_goldens() {
  auto folders = kTrainedGoldens;
  folders.insert(folders.end(), kRandomGoldens.begin(), kRandomGoldens.end());
  return golden_names(folders);
}

INSTANTIATE_TEST_SUITE_P(
    , GreedyText, ::testing::ValuesIn(all_goldens()), [](const auto& test) { return test_name(test.param); });

/// A round and how sure the head was of each draft.
struct Round {
  RoundTrace trace;
  std::vector<double> gaps;
};

struct Speculated {
  std::vector<TokenId> ids;
  std::vector<Round> rounds;
};

/// Longer than the golden, so that none of its rounds is cut short by the end.
Speculated speculate(const Model& real, const GoldenPrompt& golden, int depth) {
  Speculated run;
  std::vector<double> gaps;
  ScriptedModel model(real);
  model.on_draft_logits = [&](std::span<const float> logits) { gaps.push_back(top2_gap(logits)); };
  HeadDrafter drafter(model);
  DecodeOptions options;
  options.depth = depth;
  options.max_tokens = static_cast<int>(golden.greedy_ids.size()) + depth + 1;
  Sequence sequence(model, golden.ids, options);
  sequence.on_round = [&](const RoundTrace& trace) { run.rounds.push_back({trace, std::exchange(gaps, {})}); };
  prefill(model, &drafter, sequence, 0);
  Sequence* const one[] = {&sequence};
  while (sequence.finish == Finish::running) round(model, &drafter, one);
  run.ids.assign(sequence.tokens.begin() + sequence.prompt_length, sequence.tokens.end());
  return run;
}

class Speculation : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(Speculation, DraftsAndAcceptsWhatTheReferenceDoes) {
  const auto& [name, depth] = GetParam();
  const GoldenPrompt golden = read_golden(name);
  const OpenedModel model(golden.checkpoint);
  const Speculated run = speculate(*model, golden, depth);
  const auto& expected = golden.json.at("speculation").at("depth_" + std::to_string(depth));
  const int prompt_length = static_cast<int>(golden.ids.size());

  // A difference is a tie's when the two best tokens lie closer than two float32 implementations agree.
  int ties = 0;
  const auto excuse = [&](double gap, const std::string& what) {
    EXPECT_LT(gap, golden.tie) << what;
    ++ties;
  };
  const std::size_t same = common_prefix(run.ids, golden.greedy_ids, golden.greedy_ids.size());
  if (same < golden.greedy_ids.size()) excuse(golden.greedy_top2_gap[same], fmt::format("token {}", same));

  std::size_t compared = 0, at = 0;
  for (const auto& want : expected) {
    const int known = want.at("known").get<int>();
    while (at < run.rounds.size() && run.rounds[at].trace.known < known) ++at;
    if (at == run.rounds.size() || known > prompt_length + static_cast<int>(same)) break;
    const auto& [trace, gaps] = run.rounds[at];
    if (trace.known != known) continue;  // out of step since a tie
    ++compared;
    const auto where = fmt::format("round that knows {} tokens", known);
    const auto draft = want.at("draft").get<std::vector<TokenId>>();
    ASSERT_EQ(trace.draft.size(), draft.size()) << where;
    const std::size_t agree = common_prefix(trace.draft, draft, draft.size());
    if (agree < draft.size()) {
      excuse(
          gaps.at(agree), fmt::format("{}, draft {}: {} for {}", where, agree + 1, trace.draft[agree], draft[agree]));
    } else if (const int accepted = want.at("accepted").get<int>(); trace.accepted != accepted) {
      const int first = known - prompt_length + std::min(trace.accepted, accepted);
      excuse(golden.greedy_top2_gap.at(static_cast<std::size_t>(first)),
          fmt::format("{}: {} accepted for {}", where, trace.accepted, accepted));
    }
  }
  if (ties == 0) {
    EXPECT_EQ(compared, expected.size());
  }
  EXPECT_LE(ties, 1);
  RecordProperty("ties", ties);
}

INSTANTIATE_TEST_SUITE_P(, Speculation,
    ::testing::Combine(::testing::ValuesIn(golden_names(kTrainedGoldens)), ::testing::Values(1, 2, 3)),
    [](const auto& test) {
      return fmt::format("{}_depth_{}", test_name(std::get<0>(test.param)), std::get<1>(test.param));
    });

class HeadHistory : public ::testing::TestWithParam<std::string> {};

TEST_P(HeadHistory, DoesNotDependOnThePrefillChunk) {
  const GoldenPrompt golden = read_golden(GetParam() + "/prompt_03");
  const OpenedModel real(golden.checkpoint);
  std::vector<float> logits;  // of one block
  ScriptedModel model(*real);
  model.on_draft_logits = [&](std::span<const float> row) { logits.insert(logits.end(), row.begin(), row.end()); };
  HeadDrafter drafter(model);
  DecodeOptions options;
  options.depth = 3;
  const int depths[] = {options.depth};

  std::vector<TokenId> draft, read = golden.ids;
  for (const int chunk : {0, 5, 1}) {
    Sequence sequence(model, golden.ids, options);
    prefill(model, &drafter, sequence, chunk);
    Sequence* const one[] = {&sequence};
    logits.clear();
    const DraftBlock block = drafter.propose(one, depths).front();
    ASSERT_EQ(block.tokens.size(), 3u);
    if (chunk == 0) {
      draft = block.tokens;
      read.push_back(sequence.tokens.back());
      read.insert(read.end(), draft.begin(), draft.end());
    }
    EXPECT_EQ(block.tokens, draft) << "chunk " << chunk;

    // Identical to a history made one pair at a time.
    const Evaluation forced = evaluate(*real, read, options.depth);
    std::vector<float> expected;
    for (const auto& step : forced.mtp_logits) {
      const auto row = rows_at(step, forced.vocab, std::vector<int>{sequence.prompt_length - 1});
      expected.insert(expected.end(), row.begin(), row.end());
    }
    EXPECT_EQ(logits, expected) << "chunk " << chunk;
  }
}

INSTANTIATE_TEST_SUITE_P(
    , HeadHistory, ::testing::ValuesIn(kTrainedGoldens), [](const auto& test) { return test_name(test.param); });

}  // namespace
}  // namespace foresay
