// Several requests at once: each answer is the one it would be alone, whoever joins, leaves or fails beside it.
#include "checkpoint/expect_error.h"
#include "library/library_model.h"

namespace foresay {
namespace {

std::vector<Request> different_requests() {
  std::vector<Request> requests = {ask("def main(argv):", 40), ask("import os\n\n\ndef read(path):", 24),
      ask("class Queue:", 33), ask("# A list of", 1)};
  requests[0].depth = 0;
  requests[1].sampling.temperature = 0.9;
  requests[1].sampling.seed = 11;
  requests[2].depth = 8;
  return requests;
}

TEST(RequestBatch, EveryAnswerIsTheOneItWouldBeAlone) {
  const std::vector<Request> requests = different_requests();
  std::vector<std::string> pieces(requests.size());
  const std::vector<Answer> together = bundled().generate_all(requests, [&](const Piece& piece) {
    pieces.at(static_cast<std::size_t>(piece.answer)) += piece.text;
    return true;
  });
  ASSERT_EQ(together.size(), requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same(together[i], bundled().generate(requests[i]));
    EXPECT_EQ(pieces[i], together[i].text);
  }
}

TEST(RequestBatch, AnswersComeWhileOthersJoinAndLeave) {
  RequestBatch batch = bundled().batch();
  EXPECT_FALSE(batch.step());
  const int slow = batch.add(ask("def main(argv):", 60));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(batch.step());
  const int quick = batch.add(ask("class Queue:", 5));
  while (!batch.finished(quick)) batch.step();
  EXPECT_FALSE(batch.finished(slow));
  expect_same(batch.take(quick), bundled().generate(ask("class Queue:", 5)));
  const int third = batch.add(ask("import os", 9));
  batch.run();
  expect_same(batch.take(third), bundled().generate(ask("import os", 9)));
  expect_same(batch.take(slow), bundled().generate(ask("def main(argv):", 60)));
}

TEST(RequestBatch, CancelledAndTakenAnswersEndWhereTheyAre) {
  RequestBatch batch = bundled().batch();
  const int first = batch.add(ask("def main(argv):", 500)), second = batch.add(ask("class Queue:", 500));
  const int kept = batch.add(ask("import os", 30));
  for (int i = 0; i < 6; ++i) batch.step();
  batch.cancel(first);
  EXPECT_TRUE(batch.finished(first));
  const Answer taken = batch.take(second);
  EXPECT_EQ(taken.finish, FinishReason::cancelled);
  EXPECT_FALSE(taken.ids.empty());
  batch.run();
  EXPECT_EQ(batch.take(first).finish, FinishReason::cancelled);
  expect_same(batch.take(kept), bundled().generate(ask("import os", 30)));
  for (const int gone : {first, second, 99, -1}) {
    expect_error(ErrorCode::usage, {"handle: "}, [&] { (void)batch.take(gone); });
    expect_error(ErrorCode::usage, {"handle: "}, [&] { batch.cancel(gone); });
    expect_error(ErrorCode::usage, {"handle: "}, [&] { (void)batch.finished(gone); });
  }
}

TEST(RequestBatch, SeveralAnswersToOnePromptAreTheChoicesOfItsSeed) {
  Request request = ask("def main(argv):", 20);
  request.n = 3;
  request.sampling.temperature = 1.0;
  request.sampling.seed = 5;
  const std::vector<Answer> answers = bundled().generate_all({ask("import os", 4), request});
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_NE(answers[1].ids, answers[2].ids);
  request.n = 1;
  for (std::uint32_t choice = 0; choice < 3; ++choice) {
    request.sampling.choice = choice;
    expect_same(answers[choice + 1], bundled().generate(request));
  }
}

TEST(RequestBatch, AnAnswerMayLeaveWhileItsPromptIsRead) {
  const LanguageModel model = LanguageModel::load(kBundledFolder, {.threads = 2, .prefill_chunk = 4});
  Request request = ask("def main(argv):\n    # reads a path, and what is in the file there, a line at a time\n", 12);
  request.n = 2;
  RequestBatch batch = model.batch();
  const int reader = batch.add(request), other = reader + 1, next = batch.add(ask("import os", 6));
  EXPECT_TRUE(batch.step());
  EXPECT_EQ(batch.take(reader).finish, FinishReason::cancelled);
  batch.run();
  request.n = 1;
  expect_same(batch.take(other), bundled().generate(request));  // greedy: every choice is the same
  expect_same(batch.take(next), bundled().generate(ask("import os", 6)));
  batch.add(request);
  EXPECT_TRUE(batch.step());  // and is dropped with a prompt half read
}

TEST(RequestBatch, AnExceptionOfOneCallbackLeavesTheOthersAlone) {
  RequestBatch batch = bundled().batch();
  const int good = batch.add(ask("def main(argv):", 30));
  const int bad = batch.add(ask("class Queue:", 30), [](const Piece&) -> bool { throw std::out_of_range("enough"); });
  bool thrown = false;
  bool running = true;
  while (running) {
    try {
      running = batch.step();
    } catch (const std::out_of_range&) {
      thrown = true;
    }
  }
  EXPECT_TRUE(thrown);
  EXPECT_EQ(batch.take(bad).ids.size(), 1u);
  expect_same(batch.take(good), bundled().generate(ask("def main(argv):", 30)));
}

TEST(RequestBatch, ARefusedRequestLeavesNothingBehind) {
  RequestBatch batch = bundled().batch();
  Request bad = ask("x");
  bad.depth = 99;
  expect_error(ErrorCode::usage, {"depth: "}, [&] { batch.add(bad); });
  bad = {};
  bad.ids = {1 << 20};
  expect_error(ErrorCode::usage, {"vocabulary"}, [&] { batch.add(bad); });
  EXPECT_FALSE(batch.step());
  EXPECT_EQ(batch.add(ask("x")), 0);
}

TEST(RequestBatch, KeepsTheModelAliveAndMayBeDroppedWhileItRuns) {
  RequestBatch batch = LanguageModel::load(kBundledFolder).batch();
  batch.add(ask("def main(argv):", 500));
  EXPECT_TRUE(batch.step());
  RequestBatch moved = std::move(batch);
  EXPECT_TRUE(moved.step());
}

}  // namespace
}  // namespace foresay
