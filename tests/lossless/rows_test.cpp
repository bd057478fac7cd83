// Row invariance of the target's pass itself: identical bits whatever shares the pass, in any chunking, on any number
// of threads, and after any number of drafted rows were taken back.
#include <gtest/gtest.h>

#include <random>

#include "lossless/subject.h"

namespace foresay {
namespace {

/// What the model says about a run of ids, row by row.
struct Rows {
  std::vector<float> pre, post, logits;

  void append(Ops& ops, const Forward& forward, int first, int count) {
    const auto add = [&](std::vector<float>& to, const Tensor& x) {
      for (int i = first; i < first + count; ++i) {
        const auto values = row(ops.read(x), i, x.width);
        to.insert(to.end(), values.begin(), values.end());
      }
    };
    add(pre, forward.pre_norm);
    add(post, forward.post_norm);
    add(logits, forward.logits);
  }
};

::testing::AssertionResult same(const Rows& rows, const Evaluation& truth) {
  if (!same_bits(rows.pre, truth.hidden_pre_norm))
    return ::testing::AssertionFailure() << "pre-norm hidden states differ";
  if (!same_bits(rows.post, truth.hidden_post_norm))
    return ::testing::AssertionFailure() << "post-norm hidden states differ";
  if (!same_bits(rows.logits, truth.logits)) return ::testing::AssertionFailure() << "logits differ";
  return ::testing::AssertionSuccess();
}

Forward forward(const Model& model, Pass pass) {
  pass.logit_rows = row_range(0, static_cast<int>(pass.tokens.size()));
  return model.forward(pass);
}

class RowInvariance : public SubjectTest {
 protected:
  [[nodiscard]] int scale() const { return subject_().is_trained() ? 1 : 4; }
};

TEST_P(RowInvariance, ChunksAndThreads) {
  const Ids ids = subject_().prompt(subject_().is_trained() ? 80 : 140);
  const Evaluation truth = evaluate(subject_().model(1), ids, 0);
  for (int threads = 1; threads <= 3; ++threads) {
    for (const int chunk : {1, 2, 3, 5, 8, 16, 17, 33, 63, 64, 65, 0}) {
      if (subject_().is_trained() && chunk != 0 && chunk != 1 && chunk != 17 && chunk != 64) continue;
      const Evaluation other = evaluate(subject_().model(threads), ids, 0, chunk);
      EXPECT_TRUE(same_bits(other.hidden_pre_norm, truth.hidden_pre_norm)) << threads << " threads, chunk " << chunk;
      EXPECT_TRUE(same_bits(other.hidden_post_norm, truth.hidden_post_norm)) << threads << " threads, chunk " << chunk;
      EXPECT_TRUE(same_bits(other.logits, truth.logits)) << threads << " threads, chunk " << chunk;
    }
  }
}

// Rows of several sequences in passes of random make-up: different lengths, slices in any order, some absent.
TEST_P(RowInvariance, OtherSequencesInThePass) {
  const std::vector<int> lengths = {70, 1, 33, 66, 9};
  std::vector<Ids> texts;
  std::vector<Evaluation> truths;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    texts.push_back(subject_().prompt(lengths[i], 10 + static_cast<std::uint32_t>(i)));
    truths.push_back(evaluate(subject_().model(1), texts.back(), 0));
  }
  for (std::uint32_t seed = 0; seed < static_cast<std::uint32_t>(2 * scale()); ++seed) {
    std::mt19937 random(seed);
    const Model& model = subject_().model(1 + static_cast<int>(seed % 3));
    std::vector<std::unique_ptr<CacheSet>> caches;
    for (std::size_t i = 0; i < texts.size(); ++i) caches.push_back(model.make_caches());
    std::vector<Rows> rows(texts.size());
    while (true) {
      Pass pass;
      std::vector<std::size_t> order(texts.size()), taken;
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random);
      bool all_done = true;
      for (const std::size_t i : order) {
        const int done = caches[i]->length(), left = static_cast<int>(texts[i].size()) - done;
        if (left == 0) continue;
        all_done = false;
        if (random() % 3 == 0) continue;
        const int count = std::min(left, 1 + static_cast<int>(random() % (random() % 2 == 0 ? 4 : 40)));
        pass.slices.push_back({static_cast<int>(pass.tokens.size()), count, caches[i].get(), false});
        pass.tokens.insert(pass.tokens.end(), texts[i].begin() + done, texts[i].begin() + done + count);
        taken.push_back(i);
      }
      if (all_done) break;
      if (taken.empty()) continue;
      const Forward result = forward(model, pass);
      for (std::size_t s = 0; s < taken.size(); ++s)
        rows[taken[s]].append(model.ops(), result, pass.slices[s].first, pass.slices[s].count);
    }
    for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_TRUE(same(rows[i], truths[i])) << "sequence " << i;
  }
}

// Drafted rows, right up to some point and then wrong, kept to any length: the state goes on as if they had never been.
// Snapshots are taken and restored on the way, and what was restored goes on alike.
TEST_P(RowInvariance, DraftedRowsTakenBack) {
  const Ids ids = subject_().prompt(subject_().is_trained() ? 80 : 140, 3);
  const int length = static_cast<int>(ids.size());
  const Evaluation truth = evaluate(subject_().model(1), ids, 0);
  for (std::uint32_t seed = 0; seed < static_cast<std::uint32_t>(3 * scale()); ++seed) {
    std::mt19937 random(seed);
    const Model& model = subject_().model(1 + static_cast<int>(seed % 3));
    auto caches = model.make_caches();
    std::optional<CacheSet::Snapshot> snapshot;
    Rows rows, rows_at_snapshot;
    while (caches->length() < length) {
      const int done = caches->length();
      const bool provisional = random() % 4 != 0;
      const std::uint32_t most = provisional ? 9 : random() % 4 == 0 ? 40 : 2;
      const int count = std::min(length - done, 1 + static_cast<int>(random() % most));
      const int right = provisional ? static_cast<int>(random() % (static_cast<std::uint32_t>(count) + 1)) : count;
      Pass pass;
      for (int i = 0; i < count; ++i) {
        const TokenId id = ids[static_cast<std::size_t>(done + i)];
        pass.tokens.push_back(i < right ? id : wrong_for(id));
      }
      pass.slices = {{0, count, caches.get(), provisional}};
      const Forward result = forward(model, pass);
      if (provisional) caches->keep(right);
      ASSERT_EQ(caches->length(), done + right);
      rows.append(model.ops(), result, 0, right);
      if (random() % 6 == 0) {
        snapshot = caches->snapshot();
        rows_at_snapshot = rows;
      } else if (snapshot && random() % 8 == 0) {
        caches = model.make_caches();  // as another sequence would
        caches->restore(*snapshot);
        rows = rows_at_snapshot;
        if (random() % 2 == 0) snapshot.reset();
      }
    }
    EXPECT_TRUE(same(rows, truth)) << "seed " << seed;
  }
}

// A snapshot does not change while sequences that began from it write different things behind it.
TEST_P(RowInvariance, BorrowersOfASnapshotDoNotMeet) {
  const Model& model = subject_().model();
  const Ids ids = subject_().prompt(100);
  constexpr int kShared = 70;  // in the middle of a page
  const Evaluation truth = evaluate(model, ids, 0);
  Rows rows;
  const auto owner = model.make_caches();
  const auto run = [&](CacheSet& caches, std::span<const TokenId> tokens, bool record) {
    Pass pass;
    pass.tokens.assign(tokens.begin(), tokens.end());
    pass.slices = {{0, static_cast<int>(tokens.size()), &caches, false}};
    const Forward result = forward(model, pass);
    if (record) rows.append(model.ops(), result, 0, static_cast<int>(tokens.size()));
  };
  run(*owner, std::span(ids).first(kShared), true);
  const CacheSet::Snapshot snapshot = owner->snapshot();
  const auto borrower = model.make_caches(), late = model.make_caches();
  borrower->restore(snapshot);
  // Both write to the free places of the page they share, and both read what they wrote.
  const Ids other = subject_().prompt(20, 9);
  run(*owner, std::span(ids).subspan(kShared, 10), true);
  run(*borrower, other, false);
  run(*owner, std::span(ids).subspan(kShared + 10), true);
  EXPECT_TRUE(same(rows, truth));
  late->restore(snapshot);
  Rows from_snapshot;
  std::swap(rows, from_snapshot);
  run(*late, std::span(ids).subspan(kShared), true);
  EXPECT_TRUE(
      same_bits(rows.logits, std::span(from_snapshot.logits).subspan(kShared * static_cast<std::size_t>(truth.vocab))));
}

// Identical: which rows ask for logits changes neither these nor the recycled states.
TEST_P(RowInvariance, HeadLogitsOfSomeRowsAreThoseOfAll) {
  const Model& model = subject_().model();
  const Ids ids = subject_().prompt(8);
  const auto head = [&](std::vector<int> logit_rows) {
    const auto trunk = model.make_caches();
    const HeadCaches caches = model.make_head_caches();
    HeadPass pass;
    pass.hidden = model.head_input(
        model.forward({.tokens = {ids.begin(), ids.end() - 1}, .slices = {{0, 7, trunk.get()}}, .logit_rows = {}}));
    pass.tokens.assign(ids.begin() + 1, ids.end());
    pass.slices = {{0, 7, caches.front().get()}};
    pass.output_rows = {1, 2, 5, 6};
    pass.logit_rows = std::move(logit_rows);
    HeadForward forward = model.draft(pass);
    EXPECT_EQ(forward.recycled.rows, 4);
    EXPECT_EQ(forward.logits.rows, static_cast<int>(pass.logit_rows.size()));
    return forward;
  };
  const HeadForward all = head({0, 1, 2, 3}), some = head({3, 1}), none = head({});
  const auto states = model.ops().read(all.recycled), logits = model.ops().read(all.logits);
  EXPECT_TRUE(same_bits(model.ops().read(some.recycled), states));
  EXPECT_TRUE(same_bits(model.ops().read(none.recycled), states));
  const auto found = model.ops().read(some.logits);
  const int vocab = model.info().vocab;
  EXPECT_TRUE(same_bits(row(found, 0, vocab), row(logits, 3, vocab)));
  EXPECT_TRUE(same_bits(row(found, 1, vocab), row(logits, 1, vocab)));
}

INSTANTIATE_TEST_SUITE_P(, RowInvariance, ::testing::ValuesIn(kSubjects), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace foresay
