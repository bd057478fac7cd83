// What acceptance does with drafts that are right, wrong, half right or missing, and what the head drafts next.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "decode/prefill.h"
#include "decode/round.h"
#include "decode/sample/row.h"
#include "decode/sample/shape.h"
#include "lossless/subject.h"

namespace foresay {
namespace {

/// As many tokens as end exactly with a full block after the prompt's own token.
int tokens_for_blocks(int depth, int blocks) {
  return 1 + blocks * (depth + 1);
}

std::vector<long> all_of(int depth, long count) {
  return std::vector<long>(static_cast<std::size_t>(depth), count);
}

class DraftBlocks : public SubjectTest {
 protected:
  [[nodiscard]] const Model& model() const { return subject_().model(); }
};

// B08: a fault in later positions hides in a single number.
TEST_P(DraftBlocks, OracleIsAcceptedAtEveryPosition) {
  for (int depth = 1; depth <= 8; ++depth) {
    for (const int sampling_index : {0, 4}) {
      DecodeOptions options;
      options.sampling = sampling(sampling_index);
      if (sampling_index > 0) options.sampling.seed = 3;
      options.max_tokens = tokens_for_blocks(depth, 4);
      options.depth = depth;
      const Truth truth(model(), subject_().prompt(5), options);
      Oracle oracle({truth.text});
      const Generation result = decode(model(), &oracle, truth.prompt, options);
      EXPECT_EQ(result.ids, truth.ids);
      EXPECT_EQ(result.stats.depth, depth);
      EXPECT_EQ(result.stats.drafted, all_of(depth, 4));
      EXPECT_EQ(result.stats.accepted, all_of(depth, 4));
      EXPECT_EQ(result.stats.passes, 4);
      EXPECT_EQ(result.stats.tokens_per_pass(), depth + 1);
    }
  }
}

// B10: a rejected position must not leave anything behind, least of all a placeholder.
TEST_P(DraftBlocks, LiarIsNeverAcceptedAndChangesNothing) {
  DecodeOptions options;
  options.max_tokens = 64;
  const Truth truth(model(), subject_().prompt(5), options);
  TokenId lie = 5;
  while (std::ranges::count(truth.ids, lie) > 0) ++lie;
  for (const int depth : {1, 3, 8}) {
    options.depth = depth;
    Liar liar(lie);
    const Generation result = decode(model(), &liar, truth.prompt, options);
    EXPECT_EQ(result.ids, truth.ids);
    EXPECT_EQ(result.stats.accepted, all_of(depth, 0));
    EXPECT_EQ(result.stats.passes, 63);
    EXPECT_EQ(std::ranges::count(result.ids, 0), std::ranges::count(truth.ids, 0));
  }
}

TEST_P(DraftBlocks, HalfIsAcceptedAtTheFirstPositionAlone) {
  DecodeOptions options;
  options.max_tokens = 1 + 2 * 10;  // each pass gives the accepted token and the correction
  const Truth truth(model(), subject_().prompt(63), options);
  options.depth = 3;
  Half half({truth.text});
  const Generation result = decode(model(), &half, truth.prompt, options);
  EXPECT_EQ(result.ids, truth.ids);
  EXPECT_EQ(result.stats.passes, 10);
  // The last pass has room for two tokens, so it drafts one.
  EXPECT_EQ(result.stats.drafted, (std::vector<long>{10, 9, 9}));
  EXPECT_EQ(result.stats.accepted, (std::vector<long>{10, 0, 0}));
}

// B19: an empty draft is a plain step, also between rounds that draft.
TEST_P(DraftBlocks, EveryOtherDraftMayBeEmpty) {
  for (const int sampling_index : {0, 5}) {
    DecodeOptions options;
    options.sampling = sampling(sampling_index);
    if (sampling_index > 0) options.sampling.seed = 12;
    options.max_tokens = 40;
    const Truth truth(model(), subject_().prompt(63), options);
    for (const int depth : {1, 3, 8}) {
      options.depth = depth;
      Witness witness(model());
      HeadDrafter head(witness.model);
      Oracle oracle({truth.text});
      RandomDrafter random(model().info().vocab, 7);
      for (Drafter* inner : std::initializer_list<Drafter*>{&head, &oracle, &random}) {
        Witness fresh(model());
        Hesitant hesitant(*inner);
        EXPECT_EQ(decode(fresh.model, &hesitant, truth.prompt, options).ids, truth.ids) << "depth " << depth;
        EXPECT_TRUE(fresh.equals(truth)) << "depth " << depth;
      }
      Hesitant silent(head, [](int) { return false; });  // never drafts, but its history grows
      EXPECT_EQ(decode(model(), &silent, truth.prompt, options).ids, truth.ids);
      Hesitant late(head, [](int round) { return round >= 20; });
      EXPECT_EQ(decode(model(), &late, truth.prompt, options).ids, truth.ids);
    }
  }
}

TEST_P(DraftBlocks, AnyBlocksWillDo) {
  DecodeOptions options;
  options.max_tokens = 24;
  const Truth truth(model(), subject_().prompt(5), options);
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    options.depth = 1 + static_cast<int>(seed);
    RandomDrafter random(model().info().vocab, seed);
    EXPECT_EQ(decode(model(), &random, truth.prompt, options).ids, truth.ids);
  }
  // Blocks that are right, too long, wrong and empty, in turn.
  options.depth = 3;
  const auto at = [&](int first, int count) {
    const auto from = truth.ids.begin() + first;
    return Ids(from, from + count);
  };
  Replay replay({at(1, 3), at(5, 8), {wrong_for(truth.ids[9])}, {}, at(11, 2)});
  const Generation result = decode(model(), &replay, truth.prompt, options);
  EXPECT_EQ(result.ids, truth.ids);
  EXPECT_EQ(result.stats.drafted, (std::vector<long>{4, 3, 2}));
  EXPECT_EQ(result.stats.accepted, (std::vector<long>{3, 3, 2}));
}

/// What the head drafts for a sequence whose hidden states all come from one fresh pass over its tokens.
DraftBlock fresh_draft(const Model& model, const Sequence& like, int depth) {
  Sequence sequence(model, {like.tokens.begin(), like.tokens.begin() + like.prompt_length}, like.options);
  sequence.tokens = like.tokens;
  HeadDrafter drafter(model);
  sequence.draft_state = drafter.begin();
  const int known = static_cast<int>(like.tokens.size()) - 1;
  Pass pass;
  pass.tokens.assign(like.tokens.begin(), like.tokens.end() - 1);
  pass.slices = {{0, known, sequence.caches.get(), false}};
  drafter.observe(sequence, model.head_input(model.forward(pass)));
  Sequence* const one[] = {&sequence};
  return std::move(drafter.propose(one, std::vector<int>{depth}).front());
}

// B16, B17: the next draft starts from the row of the last accepted token, and the head's history is that of a prefill.
// The real head proposes, but blocks are verified that are accepted for 0, 1, .. k tokens, as the round number says.
TEST_P(DraftBlocks, TheNextDraftIsThatOfAFreshPrefillAfterEveryAcceptance) {
  for (const int sampling_index : {0, 4}) {
    DecodeOptions options;
    options.sampling = sampling(sampling_index);
    if (sampling_index > 0) options.sampling.seed = 21;
    options.max_tokens = subject_().is_trained() ? 24 : 40;
    for (const int length : {1, 63}) {
      const Truth truth(model(), subject_().prompt(length), options);
      for (const int depth : {1, 3, 8}) {
        if (subject_().is_trained() && depth == 8) continue;  // each round prefills afresh
        options.depth = depth;
        HeadDrafter head(model());
        int round_number = 0;
        std::map<int, int> accepted;
        Edited forced(head, [&](const Sequence& sequence, int at_depth, DraftBlock& block) {
          if (at_depth == 0) return;
          const DraftBlock fresh = fresh_draft(model(), sequence, at_depth);
          ASSERT_EQ(block.tokens, fresh.tokens) << "round " << round_number;
          for (std::size_t i = 0; i < block.q.size(); ++i) {
            ASSERT_EQ(block.q[i].ids(), fresh.q[i].ids()) << "round " << round_number;
            ASSERT_EQ(block.q[i].p(), fresh.q[i].p()) << "round " << round_number;
          }
          const auto first = truth.text.begin() + static_cast<std::ptrdiff_t>(sequence.tokens.size());
          Ids tokens(first, first + at_depth);
          const int right = (round_number++ * 5 + 1) % (at_depth + 1);
          for (int i = right; i < at_depth; ++i)
            tokens[static_cast<std::size_t>(i)] = wrong_for(tokens[static_cast<std::size_t>(i)]);
          block = certain_block(std::move(tokens));
          ++accepted[right];
        });
        ASSERT_EQ(decode(model(), &forced, truth.prompt, options, 7).ids, truth.ids);
        if (depth == 3) {
          ASSERT_EQ(accepted.size(), 4u);  // every acceptance was forced
        }
        if (HasFailure()) return;
      }
    }
  }
}

// B107: a greedy request drafts greedily. Deeper steps are compared while the block agrees with the ids that evaluate()
// forces.
TEST_P(DraftBlocks, GreedyDraftsAreTheHeadsArgmax) {
  DecodeOptions options;
  options.max_tokens = 24;
  const Truth truth(model(), subject_().prompt(5), options);
  options.depth = 4;
  const Evaluation rows = evaluate(model(), truth.text, options.depth);

  Sequence sequence(model(), truth.prompt, options);
  int compared = 0;
  sequence.on_round = [&](const RoundTrace& trace) {
    for (int i = 0; i < static_cast<int>(trace.draft.size()) && i <= trace.accepted; ++i) {
      const auto logits = row(rows.mtp_logits[static_cast<std::size_t>(i)], trace.known - 2, rows.vocab);
      EXPECT_EQ(trace.draft[static_cast<std::size_t>(i)], find_peak(logits, rows.vocab).id) << "draft " << i;
      ++compared;
    }
  };
  HeadDrafter head(model());
  prefill(model(), &head, sequence, 0);
  Sequence* const one[] = {&sequence};
  while (sequence.finish == Finish::running) round(model(), &head, one);
  EXPECT_EQ(sequence.tokens, truth.text);
  EXPECT_GE(compared, sequence.stats.passes - 1);
}

// Ratio acceptance gives other ids than plain decoding with the seed, but always the same ones.
TEST_P(DraftBlocks, RatioReplaysWithItsSeed) {
  DecodeOptions options;
  options.sampling = sampling(4);
  options.sampling.acceptance = Acceptance::ratio;
  options.max_tokens = 24;
  const Ids prompt = subject_().prompt(5);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    options.sampling.seed = seed;
    options.depth = 3;
    HeadDrafter head(model());
    const Generation first = decode(model(), &head, prompt, options);
    const Generation again = decode(subject_().model(2), &head, prompt, options, 2);
    EXPECT_EQ(first.ids, again.ids);
    EXPECT_EQ(first.stats.accepted, again.stats.accepted);
    EXPECT_EQ(first.seed, seed);
    Liar liar;
    EXPECT_EQ(decode(model(), &liar, prompt, options).ids.size(), 24u);
  }
}

TEST_P(DraftBlocks, RatioWithoutDraftsIsPlainSampling) {
  DecodeOptions options;
  options.sampling = sampling(5);
  options.sampling.seed = 31;
  options.sampling.acceptance = Acceptance::ratio;
  options.max_tokens = 16;
  options.depth = 0;
  const Ids prompt = subject_().prompt(5);
  HeadDrafter head(model());
  const Ids ids = decode(model(), &head, prompt, options).ids;

  Ids text = prompt;
  KeyedChance chance{KeyedNoise(31)};
  for (std::uint32_t index = 0; index < 16; ++index) {
    const Evaluation rows = evaluate(model(), text, 0);
    const Distribution p = shape(row(rows.logits, rows.positions - 1, rows.vocab), options.sampling);
    text.push_back(chance.draw(p, index, Purpose::residual));
  }
  EXPECT_EQ(ids, Ids(text.begin() + 5, text.end()));
}

// An unseeded run draws its seed from the system and reports it, so that it can be replayed.
TEST_P(DraftBlocks, AReportedSeedReplays) {
  DecodeOptions options;
  options.sampling = sampling(4);
  options.max_tokens = 12;
  const Ids prompt = subject_().prompt(5);
  HeadDrafter head(model());
  const Generation first = decode(model(), &head, prompt, options);
  options.sampling.seed = first.seed;
  options.sampling.acceptance = Acceptance::ratio;  // what a request without a seed gets
  EXPECT_EQ(decode(model(), &head, prompt, options).ids, first.ids);
}

INSTANTIATE_TEST_SUITE_P(, DraftBlocks, ::testing::ValuesIn(kSubjects), [](const auto& test) { return test.param; });

/// Exact probabilities of the first `tokens` generated ids.
void enumerate(const Model& model, const Ids& text, const SamplingOptions& sampling, int tokens, double probability,
    std::map<Ids, double>& out, Ids& generated) {
  if (tokens == 0) {
    out[generated] += probability;
    return;
  }
  const Evaluation rows = evaluate(model, text, 0);
  const Distribution p = shape(row(rows.logits, rows.positions - 1, rows.vocab), sampling);
  for (std::size_t i = 0; i < p.ids().size(); ++i) {
    Ids longer = text;
    longer.push_back(p.ids()[i]);
    generated.push_back(p.ids()[i]);
    enumerate(model, longer, sampling, tokens - 1, probability * p.p()[i], out, generated);
    generated.pop_back();
  }
}

// The joint distribution of three tokens, decoded by ratio acceptance at depth 2, is the target's. Pearson's test at
// the 0.1 % level over fixed seeds; the critical value is Wilson and Hilferty's approximation.
TEST(Ratio, ThreeTokensAreDistributedAsTheTargetsWhateverDrafts) {
  Subject& hybrid = subject("tiny_hybrid");
  const Model& model = hybrid.model();
  DecodeOptions options;
  options.sampling = {.temperature = 1.5, .top_k = 3};
  options.sampling.acceptance = Acceptance::ratio;
  options.max_tokens = 3;
  options.depth = 2;
  const Ids prompt = hybrid.prompt(2);
  std::map<Ids, double> exact;
  Ids none;
  enumerate(model, prompt, options.sampling, 3, 1.0, exact, none);

  HeadDrafter head(model);
  Liar liar(exact.begin()->first.back());
  constexpr int kRuns = 2000;
  for (Drafter* drafter : std::initializer_list<Drafter*>{&head, &liar}) {
    std::map<Ids, int> counts;
    for (int run = 0; run < kRuns; ++run) {
      options.sampling.seed = static_cast<std::uint64_t>(run);
      ++counts[decode(model, drafter, prompt, options).ids];
    }
    double statistic = 0, rest = kRuns, rest_seen = kRuns;
    int cells = 0;
    for (const auto& [ids, probability] : exact) {
      const double expected = kRuns * probability;
      if (expected < 5) continue;  // all of these are one cell
      statistic += (counts[ids] - expected) * (counts[ids] - expected) / expected;
      rest -= expected;
      rest_seen -= counts[ids];
      ++cells;
    }
    if (rest >= 5) {
      statistic += (rest_seen - rest) * (rest_seen - rest) / rest;
      ++cells;
    }
    for (const auto& [ids, seen] : counts) EXPECT_TRUE(exact.contains(ids) || seen == 0);
    ASSERT_GE(cells, 10);
    const double freedom = cells - 1, spread = 2.0 / (9.0 * freedom);
    EXPECT_LT(statistic, freedom * std::pow(1 - spread + 3.09 * std::sqrt(spread), 3)) << cells << " cells";
  }
}

}  // namespace
}  // namespace foresay
