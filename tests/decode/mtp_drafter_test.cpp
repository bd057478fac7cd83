#include "decode/draft/mtp_drafter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "lossless/subject.h"

namespace foresay {
namespace {

/// A sequence at the end of `text`: every token but the last has been run, nothing has been observed yet.
class MtpDrafterTest : public SubjectTest {
 protected:
  struct Ready {
    std::unique_ptr<Sequence> sequence;
    Tensor hidden;  ///< [tokens - 1, D], what the head reads
  };

  [[nodiscard]] const Model& model() const { return subject_().model(); }

  [[nodiscard]] Ready ready(const Ids& text, Drafter& drafter) const {
    DecodeOptions options;
    options.sampling = {.temperature = 1.0, .seed = 11};  // q has every id, so that equal blocks mean equal logits
    const int known = static_cast<int>(text.size()) - 1;
    Ready result;
    result.sequence = std::make_unique<Sequence>(model(), Ids{text.front()}, options);
    result.sequence->tokens = text;
    result.sequence->draft_state = drafter.begin();
    Pass pass;
    pass.tokens.assign(text.begin(), text.end() - 1);
    pass.slices = {{0, known, result.sequence->caches.get(), false}};
    result.hidden = model().head_input(model().forward(pass));
    return result;
  }

  void observe(Drafter& drafter, const Ready& ready, int first, int count) const {
    drafter.observe(*ready.sequence, model().ops().select(ready.hidden, row_range(first, count)));
  }

  static DraftBlock propose(Drafter& drafter, Sequence& sequence, int depth) {
    Sequence* const one[] = {&sequence};
    return std::move(drafter.propose(one, std::vector<int>{depth}).front());
  }

  static void expect_same(const DraftBlock& a, const DraftBlock& b, const std::string& what) {
    EXPECT_EQ(a.tokens, b.tokens) << what;
    ASSERT_EQ(a.q.size(), b.q.size()) << what;
    for (std::size_t i = 0; i < a.q.size(); ++i) {
      EXPECT_EQ(a.q[i].ids(), b.q[i].ids()) << what;
      EXPECT_EQ(a.q[i].p(), b.q[i].p()) << what << ", draft " << i;  // identical
    }
  }

  /// One pair at a time, each followed by a draft that leaves again.
  [[nodiscard]] DraftBlock step_by_step(const Ids& text, int depth) const {
    MtpDrafter drafter(model());
    const Ready all = ready(text, drafter);
    DraftBlock last;
    for (int t = 0; t < all.hidden.rows; ++t) {
      all.sequence->tokens.assign(text.begin(), text.begin() + t + 2);
      observe(drafter, all, t, 1);
      last = propose(drafter, *all.sequence, t + 1 == all.hidden.rows ? depth : 1 + t % 3);
      EXPECT_EQ(last.tokens.size(), last.q.size());
    }
    return last;
  }
};

// More than 16 waiting pairs are written to the head's cache at once, by a pass that drafts nothing.
TEST_P(MtpDrafterTest, HistoryInOnePieceIsHistoryStepByStep) {
  for (const int pairs : {1, 2, 15, 16, 17, 18, 33, 63, 64, 65, 130}) {
    const Ids text = subject_().prompt(pairs + 1, 5);
    const DraftBlock expected = step_by_step(text, 8);
    EXPECT_EQ(expected.tokens.size(), 8u);
    for (const int chunk : {1, 2, 15, 16, 17, 40, pairs}) {
      MtpDrafter drafter(model());
      const Ready all = ready(text, drafter);
      for (int first = 0; first < pairs; first += chunk) {
        const int count = std::min(chunk, pairs - first);
        // As in a prompt: the newest pair's token is known only behind the last chunk.
        all.sequence->tokens.assign(text.begin(), text.begin() + first + count + (first + count == pairs ? 1 : 0));
        observe(drafter, all, first, count);
      }
      all.sequence->tokens = text;
      expect_same(propose(drafter, *all.sequence, 8), expected, fmt::format("{} pairs, chunk {}", pairs, chunk));
    }
  }
}

// Coupled acceptance needs drafts drawn by the noise of the very position at which the target will draw.
TEST_P(MtpDrafterTest, DraftsAreDrawnByThePositionsOwnNoise) {
  for (const Acceptance acceptance : {Acceptance::coupled, Acceptance::ratio}) {
    MtpDrafter drafter(model());
    const Ready all = ready(subject_().prompt(9), drafter);  // a prompt of one, eight generated
    all.sequence->options.sampling.acceptance = acceptance;
    observe(drafter, all, 0, all.hidden.rows);
    const DraftBlock block = propose(drafter, *all.sequence, 8);
    ASSERT_EQ(block.tokens.size(), 8u);
    KeyedChance chance{KeyedNoise(11)};
    for (std::size_t i = 0; i < block.tokens.size(); ++i) {
      const auto purpose = acceptance == Acceptance::coupled ? Purpose::draw : Purpose::draft;
      EXPECT_EQ(block.tokens[i], chance.draw(block.q[i], static_cast<std::uint32_t>(8 + i), purpose)) << "draft " << i;
    }
  }
}

TEST_P(MtpDrafterTest, SequencesThatShareAStepDraftAsAlone) {
  MtpDrafter drafter(model());
  std::vector<Ready> all;
  std::vector<Sequence*> sequences;
  const std::vector<int> lengths = {2, 20, 65, 9, 64}, depths = {8, 0, 3, 1, 5};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    all.push_back(ready(subject_().prompt(lengths[i], static_cast<std::uint32_t>(i)), drafter));
    observe(drafter, all.back(), 0, all.back().hidden.rows);
    sequences.push_back(all.back().sequence.get());
  }
  const std::vector<DraftBlock> blocks = drafter.propose(sequences, depths);
  ASSERT_EQ(blocks.size(), lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    EXPECT_EQ(static_cast<int>(blocks[i].tokens.size()), depths[i]);
    MtpDrafter solo(model());
    const Ready alone = ready(subject_().prompt(lengths[i], static_cast<std::uint32_t>(i)), solo);
    observe(solo, alone, 0, alone.hidden.rows);
    expect_same(blocks[i], propose(solo, *alone.sequence, depths[i]), fmt::format("sequence {}", i));
  }
}

// With drafts from a part of the vocabulary, q is a distribution over the low ids, what is always wanted and the
// context, and nothing else; whoever shares the pass.
TEST_P(MtpDrafterTest, DraftsFromAPartOfTheVocabularyComeFromItAndTheContext) {
  const int vocab = model().info().vocab;
  for (const int low : {1, vocab / 4, vocab / 2}) {
    MtpDrafter drafter(model(), {vocab - 1, 0, vocab + 5});
    std::vector<Ready> all;
    std::vector<Sequence*> sequences;
    for (std::uint32_t i = 0; i < 3; ++i) {
      all.push_back(ready(subject_().prompt(6 + 10 * static_cast<int>(i), i), drafter));
      all.back().sequence->options.draft_vocabulary = i == 2 ? low + 1 : low;
      observe(drafter, all.back(), 0, all.back().hidden.rows);
      sequences.push_back(all.back().sequence.get());
    }
    const auto blocks = drafter.propose(sequences, std::vector<int>{4, 2, 8});
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const Ids& text = sequences[i]->tokens;
      Ids expected;
      for (TokenId id = 0; id < vocab; ++id) {
        const bool in_context = std::ranges::find(text, id) != text.end();
        if (id < sequences[i]->options.draft_vocabulary || id == vocab - 1 || in_context) expected.push_back(id);
      }
      for (const Distribution& q : blocks[i].q) EXPECT_EQ(q.ids(), expected) << "low " << low << " sequence " << i;

      MtpDrafter solo(model(), {vocab - 1, 0, vocab + 5});
      const Ready alone = ready(text, solo);
      alone.sequence->options.draft_vocabulary = sequences[i]->options.draft_vocabulary;
      observe(solo, alone, 0, alone.hidden.rows);
      expect_same(blocks[i], propose(solo, *alone.sequence, static_cast<int>(blocks[i].tokens.size())),
          fmt::format("low {} sequence {}", low, i));
    }
  }
}

TEST_P(MtpDrafterTest, GreedyDraftsFromAPartAreThoseOfTheWholeWhileItHasThem) {
  const int vocab = model().info().vocab;
  int same = 0, parted = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Ids text = subject_().prompt(12, seed);
    const auto drafts = [&](int low) {
      MtpDrafter drafter(model());
      const Ready all = ready(text, drafter);
      all.sequence->options.sampling = {};
      all.sequence->options.draft_vocabulary = low;
      observe(drafter, all, 0, all.hidden.rows);
      return propose(drafter, *all.sequence, 6).tokens;
    };
    const Ids whole = drafts(0);
    ASSERT_EQ(whole.size(), 6u);
    for (const int low : {vocab / 4, vocab / 2}) {
      const Ids part = drafts(low);
      for (std::size_t i = 0; i < whole.size(); ++i) {
        if (whole[i] >= low && std::ranges::find(text, whole[i]) == text.end()) {
          EXPECT_NE(part[i], whole[i]);
          ++parted;
          break;
        }
        ASSERT_EQ(part[i], whole[i]) << "low " << low << " draft " << i;
        ++same;
      }
    }
  }
  EXPECT_GT(same, 20);
  EXPECT_GT(parted, 0) << "the test never came to its border";
}

TEST_P(MtpDrafterTest, LeftToItselfASmallVocabularyIsDraftedFromWhole) {
  for (const int asked : {-1, 0, model().info().vocab, 1 << 30}) {
    MtpDrafter drafter(model());
    const Ready all = ready(subject_().prompt(9), drafter);
    all.sequence->options.draft_vocabulary = asked;
    observe(drafter, all, 0, all.hidden.rows);
    const auto block = propose(drafter, *all.sequence, 2);
    EXPECT_EQ(static_cast<int>(block.q.front().ids().size()), model().info().vocab) << asked;
  }
}

TEST_P(MtpDrafterTest, ARowThatIsNotFiniteEndsItsBlockAlone) {
  ScriptedModel broken(model());
  int row = 0;
  broken.on_draft_logits = [&](std::span<float> logits) {
    if (row++ == 3) logits[1] = std::numeric_limits<float>::quiet_NaN();  // second step of the second sequence
  };
  MtpDrafter drafter(broken);
  std::vector<Ready> all;
  for (std::uint32_t i = 0; i < 2; ++i) {
    all.push_back(ready(subject_().prompt(9, i), drafter));
    observe(drafter, all.back(), 0, all.back().hidden.rows);
  }
  Sequence* const both[] = {all[0].sequence.get(), all[1].sequence.get()};
  const auto blocks = drafter.propose(both, std::vector<int>{4, 4});
  EXPECT_EQ(blocks[0].tokens.size(), 4u);
  EXPECT_EQ(blocks[1].tokens.size(), 1u);
  EXPECT_EQ(blocks[1].q.size(), 1u);
  for (std::size_t i = 0; i < 2; ++i) {
    MtpDrafter solo(model());
    const Ready alone = ready(subject_().prompt(9, static_cast<std::uint32_t>(i)), solo);
    observe(solo, alone, 0, alone.hidden.rows);
    const int depth = i == 0 ? 4 : 1;
    expect_same(blocks[i], propose(solo, *alone.sequence, depth), fmt::format("sequence {}", i));
  }
}

INSTANTIATE_TEST_SUITE_P(, MtpDrafterTest, ::testing::Values("tiny", "tiny_tied", "tiny_hybrid", "tiny_hybrid_4bit"),
    [](const auto& test) { return test.param; });

}  // namespace
}  // namespace foresay
