// One request through the public interface: what comes out, how it ends, what is refused.
#include <cstdlib>
#include <fstream>
#include <limits>
#include <numeric>
#include <thread>

#include "checkpoint/expect_error.h"
#include "cli/program.h"
#include "library/library_model.h"

namespace foresay {
namespace {

TEST(LanguageModel, SaysWhatWasLoaded) {
  std::vector<std::string> notes;
  ModelOptions options;
  options.lane = "cpu";
  options.on_note = [&](std::string_view note) { notes.emplace_back(note); };
  const ModelDescription found = LanguageModel::load(kBundledFolder, options).description();
  EXPECT_FALSE(notes.empty());
  EXPECT_EQ(found.folder, kBundledFolder);
  EXPECT_EQ(found.family, "qwen3_5");
  EXPECT_EQ(found.lane.find("cpu"), 0u) << found.lane;
  EXPECT_GT(found.context, 0);
  EXPECT_GT(found.vocab, 0);
  EXPECT_TRUE(found.has_tokenizer);
  EXPECT_TRUE(found.has_head);
  EXPECT_EQ(found.max_depth, 8);
  EXPECT_FALSE(found.head_reason.empty());
  EXPECT_FALSE(found.stop_ids.empty());
}

TEST(LanguageModel, OpensTheBundledCheckpointWhenNoFolderIsGiven) {
  EXPECT_EQ(LanguageModel::load("").description().folder, kBundledFolder);
}

TEST(LanguageModel, OpensNamesOfTheLocalCache) {
  TempDir cache;
  const fs::path repository = cache.path() / "models--tiny--qwen";
  fs::create_directories(repository / "refs");
  fs::create_directories(repository / "snapshots");
  const std::string commit = "0123456789abcdef0123456789abcdef01234567";
  std::ofstream(repository / "refs" / "main") << commit;
  fs::create_directory_symlink(kBundledFolder, repository / "snapshots" / commit);
  ::setenv("HF_HUB_CACHE", cache.path().c_str(), 1);
  EXPECT_EQ(LanguageModel::load("tiny/qwen@main").description().family, "qwen3_5");
  expect_error(ErrorCode::usage, {"tiny/absent"}, [] { (void)LanguageModel::load("tiny/absent"); });
  ::unsetenv("HF_HUB_CACHE");
}

TEST(LanguageModel, LoadErrorsHaveTheirCodes) {
  TempDir dir;
  expect_error(ErrorCode::usage, {"/no/such/folder"}, [] { (void)LanguageModel::load("/no/such/folder"); });
  fs::create_directory(dir.path() / "empty");
  expect_error(
      ErrorCode::checkpoint, {"config.json"}, [&] { (void)LanguageModel::load((dir.path() / "empty").string()); });

  auto options = tiny_hybrid();
  options.head = false;
  const std::string headless = write_tiny(dir.path() / "headless", options).string();
  expect_error(
      ErrorCode::mtp_required, {"required"}, [&] { (void)LanguageModel::load(headless, {.mtp = "required"}); });
  std::vector<std::string> warnings;
  ModelOptions listening;
  listening.on_warning = [&](std::string_view warning) { warnings.emplace_back(warning); };
  EXPECT_FALSE(LanguageModel::load(headless, listening).description().has_head);
  EXPECT_EQ(warnings.size(), 1u);
}

TEST(LanguageModel, EncodesAndDecodes) {
  const std::string text = "def größe(x):\n    return \"日本\" <|im_end|>";
  const std::vector<TokenId> ids = bundled().encode(text);
  EXPECT_EQ(bundled().decode(ids, /*skip_special=*/false), text);
  EXPECT_LT(bundled().decode(ids).size(), text.size());
  EXPECT_EQ(bundled().decode({}), "");
  expect_error(ErrorCode::usage, {"ids: ", "-1"}, [] { (void)bundled().decode({-1}); });
  expect_error(ErrorCode::usage, {"UTF-8"}, [] { (void)bundled().encode("\xff"); });
}

TEST(LanguageModel, ChatPromptsAreTheTemplates) {
  const std::vector<Message> messages = {{"system", "Be brief."}, {"user", "Hi"}};
  const std::string prompt = bundled().chat_prompt(messages);
  EXPECT_NE(prompt.find("Be brief."), std::string::npos);
  EXPECT_EQ(prompt,
      bundled().chat_prompt_json(R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])"));
  EXPECT_NE(prompt, bundled().chat_prompt(messages, R"({"add_generation_prompt": false})"));
  expect_error(ErrorCode::usage, {"messages: "}, [] { (void)bundled().chat_prompt_json("{}"); });
  expect_error(ErrorCode::usage, {"variables: "}, [] { (void)bundled().chat_prompt({{"user", "x"}}, "[]"); });

  Request chat;
  chat.messages = messages;
  chat.max_tokens = 8;
  EXPECT_EQ(bundled().generate(chat).prompt_ids, bundled().encode(prompt));
}

TEST(Generate, GivesWhatTheProgramGives) {
  const nlohmann::ordered_json program =
      generate_json(kBundled, {"--prompt", kPrompt, "--max-tokens", "40", "--temperature", "0.8", "--seed", "7"});
  Request request = ask(kPrompt, 40);
  request.ignore_eos = false;
  request.sampling.temperature = 0.8;
  request.sampling.seed = 7;
  const Answer answer = bundled().generate(request);
  EXPECT_EQ(answer.ids, program["ids"].get<std::vector<TokenId>>());
  EXPECT_EQ(answer.text, program["text"].get<std::string>());
  EXPECT_EQ(answer.prompt_ids, program["prompt_ids"].get<std::vector<TokenId>>());
  EXPECT_EQ(name_of(answer.finish), program["finish_reason"].get<std::string>());
  EXPECT_EQ(answer.seed, 7u);
  EXPECT_EQ(answer.stats.passes, program["stats"]["passes"].get<int>());
  EXPECT_EQ(answer.stats.accepted, program["stats"]["accepted"].get<std::vector<long>>());
  EXPECT_TRUE(answer.drafted);
  EXPECT_EQ(answer.warning, "");
}

TEST(Generate, StatisticsAddUp) {
  const Answer answer = bundled().generate(ask(kPrompt, 32));
  const Stats& stats = answer.stats;
  EXPECT_EQ(stats.prompt_tokens, static_cast<int>(answer.prompt_ids.size()));
  EXPECT_EQ(stats.generated, 32);
  EXPECT_EQ(stats.depth, 3);
  EXPECT_EQ(std::accumulate(stats.accepted.begin(), stats.accepted.end(), 1L) + stats.passes, 32);
  EXPECT_GT(stats.prompt_seconds, 0);
  EXPECT_GT(stats.decode_seconds, 0);
  Request plain = ask(kPrompt, 32);
  plain.depth = 0;
  const Answer without = bundled().generate(plain);
  EXPECT_EQ(without.ids, answer.ids);
  EXPECT_FALSE(without.drafted);
  EXPECT_EQ(without.stats.passes, 31);
}

TEST(Generate, PiecesAreTheAnswer) {
  std::string text;
  std::vector<TokenId> ids;
  const Answer answer = bundled().generate(ask("print(\"日本", 48), [&](const Piece& piece) {
    text += piece.text;
    if (piece.id) ids.push_back(*piece.id);
    EXPECT_EQ(bundled().encode("a").size(), 1u);  // a callback may encode
    return true;
  });
  EXPECT_EQ(text, answer.text);
  EXPECT_EQ(ids, answer.ids);
}

TEST(Generate, ACallbackStopsBehindItsPiece) {
  const Answer whole = bundled().generate(ask(kPrompt, 24));
  for (const std::size_t count : {1u, 2u, 3u, 7u}) {
    std::vector<TokenId> seen;
    std::string text;
    const Answer answer = bundled().generate(ask(kPrompt, 24), [&](const Piece& piece) {
      seen.push_back(piece.id.value());
      text += piece.text;
      return seen.size() < count;
    });
    EXPECT_EQ(answer.ids, std::vector<TokenId>(whole.ids.begin(), whole.ids.begin() + static_cast<long>(count)));
    EXPECT_EQ(answer.ids, seen);
    EXPECT_EQ(answer.text, text);
    EXPECT_EQ(answer.finish, FinishReason::stop);
  }
}

TEST(Generate, ACallbacksExceptionReachesTheCallerAndTheModelGoesOn) {
  int calls = 0;
  EXPECT_THROW((void)bundled().generate(ask(kPrompt),
                   [&](const Piece&) -> bool {
                     if (++calls == 3) throw std::out_of_range("enough");
                     return true;
                   }),
      std::out_of_range);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(bundled().generate(ask(kPrompt, 4)).ids.size(), 4u);
}

TEST(Generate, ACallbackThatGeneratesIsRefused) {
  expect_error(ErrorCode::usage, {"callback"}, [] {
    (void)bundled().generate(ask(kPrompt), [](const Piece&) {
      (void)bundled().generate(ask("again"));
      return true;
    });
  });
}

TEST(Generate, StopTextsAndIdsEndTheAnswer) {
  const Answer whole = bundled().generate(ask(kPrompt, 24));
  Request request = ask(kPrompt, 24);
  request.stop = {whole.text.substr(5, 4)};
  const Answer cut = bundled().generate(request);
  EXPECT_EQ(cut.text, whole.text.substr(0, whole.text.find(request.stop[0])));
  EXPECT_EQ(cut.finish, FinishReason::stop);

  request.stop.clear();
  request.stop_ids = {whole.ids[6]};
  const Answer ended = bundled().generate(request);
  EXPECT_EQ(ended.ids.back(), whole.ids[6]);
  EXPECT_LE(ended.ids.size(), 7u);
  EXPECT_EQ(ended.finish, FinishReason::stop);
}

TEST(Generate, LogProbabilitiesComeWithEveryId) {
  Request request = ask(kPrompt, 12);
  request.top_logprobs = 2;
  const Answer answer = bundled().generate(request);
  ASSERT_EQ(answer.logprobs.size(), answer.ids.size());
  for (std::size_t i = 0; i < answer.ids.size(); ++i) {
    ASSERT_EQ(answer.logprobs[i].top.size(), 2u);
    EXPECT_EQ(answer.logprobs[i].top[0].id, answer.ids[i]);  // greedy
    EXPECT_EQ(answer.logprobs[i].top[0].value, answer.logprobs[i].value);
    EXPECT_LE(answer.logprobs[i].top[1].value, answer.logprobs[i].value);
  }
  request.top_logprobs.reset();
  EXPECT_TRUE(bundled().generate(request).logprobs.empty());
}

TEST(Generate, MinTokensHoldsTheEndBack) {
  const Answer whole = bundled().generate(ask(kPrompt, 12));
  Request request = ask(kPrompt, 12);
  request.stop_ids = {whole.ids[0]};
  EXPECT_EQ(bundled().generate(request).ids.size(), 1u);
  request.min_tokens = 5;
  EXPECT_GE(bundled().generate(request).ids.size(), 5u);
}

TEST(Generate, IsCancelledBetweenPasses) {
  std::atomic<bool> cancel{false};
  Request request = ask(kPrompt, 1000);
  request.cancel = &cancel;
  int pieces = 0;
  const Answer answer = bundled().generate(request, [&](const Piece&) {
    cancel = ++pieces >= 10;
    return true;
  });
  EXPECT_EQ(answer.finish, FinishReason::cancelled);
  EXPECT_GE(answer.ids.size(), 10u);
  EXPECT_LE(answer.ids.size(), 14u);                                   // a pass emits at most depth + 1
  EXPECT_EQ(bundled().generate(request).ids, std::vector<TokenId>());  // and before the prompt
}

TEST(Generate, PromptsThatTheModelCannotTakeAreUsageErrors) {
  Request request;
  request.ids = {1, 1 << 20};
  expect_error(ErrorCode::usage, {"1048576", "vocabulary"}, [&] { (void)bundled().generate(request); });
  request.ids.assign(static_cast<std::size_t>(bundled().description().context), 1);
  expect_error(ErrorCode::usage, {"context"}, [&] { (void)bundled().generate(request); });
  request = ask("x");
  request.sampling.logit_bias = {{1 << 20, 1.0f}};
  expect_error(ErrorCode::usage, {"logit_bias: ", "vocabulary"}, [&] { (void)bundled().generate(request); });
  request = ask("x");
  request.n = 2;
  expect_error(ErrorCode::usage, {"n: ", "generate_all"}, [&] { (void)bundled().generate(request); });
}

TEST(Generate, IdsNeedNoTokenizer) {
  TempDir dir;
  const LanguageModel model = LanguageModel::load(write_tiny(dir.path() / "model", tiny_hybrid()).string());
  Request request;
  request.ids = {1, 2, 3};
  request.max_tokens = 5;
  const Answer answer = model.generate(request);
  EXPECT_EQ(answer.ids.size(), 5u);
  EXPECT_EQ(answer.text, "");
  expect_error(ErrorCode::checkpoint, {"tokenizer.json"}, [&] { (void)model.generate(ask("x")); });
  request.stop = {"x"};
  expect_error(ErrorCode::checkpoint, {"tokenizer.json"}, [&] { (void)model.generate(request); });
}

TEST(Generate, AHeadThatIsNotFiniteIsTreatedAsAskedFor) {
  TempDir dir;
  const fs::path folder = write_tiny(dir.path() / "model", tiny_hybrid());
  const std::string name = "mtp.layers.0.mlp.up_proj.weight";
  edit_tensors(folder / "model.safetensors",
      [&](TensorMap& tensors) { tensors.at(name).set(7, std::numeric_limits<float>::quiet_NaN()); });
  Request request;
  request.ids = {1, 2, 3};
  request.max_tokens = 12;
  const auto run = [&](const std::string& mtp) {
    return LanguageModel::load(folder.string(), {.mtp = mtp}).generate(request);
  };
  expect_error(ErrorCode::checkpoint, {name, "not finite"}, [&] { (void)run("on"); });
  expect_error(ErrorCode::mtp_required, {name, "not finite"}, [&] { (void)run("required"); });
  const Answer answer = run("auto");
  EXPECT_FALSE(answer.drafted);
  EXPECT_NE(answer.warning.find(name), std::string::npos) << answer.warning;
  EXPECT_EQ(answer.ids, run("off").ids);
}

TEST(Generate, ADamagedTrunkIsNamed) {
  TempDir dir;
  const fs::path folder = write_tiny(dir.path() / "model", tiny_hybrid());
  const std::string name = "model.language_model.layers.0.mlp.up_proj.weight";
  edit_tensors(folder / "model.safetensors",
      [&](TensorMap& tensors) { tensors.at(name).set(7, std::numeric_limits<float>::quiet_NaN()); });
  Request request;
  request.ids = {1, 2, 3};
  const LanguageModel model = LanguageModel::load(folder.string());
  expect_error(ErrorCode::checkpoint, {name}, [&] { (void)model.generate(request); });
}

TEST(Threads, CallsFromAnyThreadGiveTheSame) {
  const Answer expected = bundled().generate(ask(kPrompt, 16));
  std::vector<Answer> answers(3);
  std::vector<std::thread> threads;
  for (Answer& answer : answers) {
    threads.emplace_back([&answer, model = bundled()] { answer = model.generate(ask(kPrompt, 16)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Answer& answer : answers) expect_same(answer, expected);
}

}  // namespace
}  // namespace foresay
