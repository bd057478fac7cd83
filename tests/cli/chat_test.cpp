// foresay chat through a pipe: what reaches the model, what is printed, and what it survives.
#include "cli/program.h"
#include "text/tokenizer.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

/// Runs chat with these lines as stdin; --json gives a document per answer.
Outcome chat(const std::string& input, Arguments more = {}, const std::string& model = kBundled) {
  Command command;
  command.input = input;
  Arguments arguments = {"chat", model};
  if (std::ranges::find(more, "--max-tokens") == more.end()) arguments.insert(arguments.end(), {"--max-tokens", "12"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return foresay(arguments, command);
}

std::vector<Json> answers(const std::string& input, Arguments more = {}, const std::string& model = kBundled) {
  more.push_back("--json");
  const Outcome outcome = chat(input, more, model);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::vector<Json> all;
  for (std::size_t at = 0; at < outcome.out.size();) {
    const std::size_t end = outcome.out.find('\n', at);
    all.push_back(Json::parse(outcome.out.substr(at, end - at), nullptr, false));
    at = end + 1;
  }
  return all;
}

/// What generate answers to a rendered conversation.
Json generated(const std::string& rendered, Arguments more = {}) {
  more.insert(more.begin(), {"--prompt", rendered, "--max-tokens", "12"});
  return generate_json(kBundled, more)["ids"];
}

std::string turn(const std::string& role, const std::string& text) {
  return "<|im_start|>" + role + "\n" + text + "<|im_end|>\n";
}
const std::string kAnswer = "<|im_start|>assistant\n";

TEST(Chat, AnswersGrowOneConversation) {
  const auto said = answers("Hello\nMore of it\n");
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0]["ids"], generated(turn("user", "Hello") + kAnswer));
  EXPECT_EQ(said[1]["ids"],
      generated(turn("user", "Hello") + turn("assistant", said[0]["text"]) + turn("user", "More of it") + kAnswer));
  EXPECT_EQ(said[1]["stats"]["depth"], 3);
  EXPECT_FALSE(said[0]["finish_reason"].get<std::string>().empty());
}

TEST(Chat, DraftsFromFewIdsGiveTheSameAnswer) {
  const auto plain = answers("Hello\n"), few = answers("Hello\n", {"--draft-vocab", "16"});
  ASSERT_EQ(few.size(), 1u);
  EXPECT_EQ(few[0]["ids"], plain[0]["ids"]);
  EXPECT_NE(few[0]["stats"]["accepted"], plain[0]["stats"]["accepted"]);
}

TEST(Chat, PlainOutputIsTheAnswersAlone) {
  const std::string input = "Hello\n\n/stats\n/nonsense\n/help\nMore of it\n";
  const auto said = answers(input);
  const Outcome outcome = chat(input);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, said[0]["text"].get<std::string>() + "\n" + said[1]["text"].get<std::string>() + "\n");
  expect_parts(outcome.err,
      {"1 answers, ", "drafts accepted", "tokens per pass", "/nonsense: no such command", "/system TEXT", "/quit"});
  EXPECT_EQ(outcome.err.find('\033'), std::string::npos);
}

TEST(Chat, ResetBeginsAnewAndKeepsTheSystemMessage) {
  const auto said = answers("Hello\n/reset\nHello\n", {"--system", "Be brief."});
  const Json first = generated(turn("system", "Be brief.") + turn("user", "Hello") + kAnswer);
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0]["ids"], first);
  EXPECT_EQ(said[1]["ids"], first);
}

TEST(Chat, SystemIsSetAndShown) {
  const auto said = answers("/system Write  Python. \nHello\n");
  EXPECT_EQ(said.at(0)["ids"], generated(turn("system", "Write  Python.") + turn("user", "Hello") + kAnswer));
  expect_parts(chat("/system\n/system A b\n/system\n").err, {"no system message\n", "system message: A b\n"});
}

TEST(Chat, DepthIsChangedOrRefusedByName) {
  const auto said = answers("/depth 1\nHello\n/depth 0\n/reset\nHello\n/depth 8\n/reset\nHello\n");
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0]["stats"]["depth"], 1);
  EXPECT_EQ(said[1]["stats"]["depth"], 0);
  EXPECT_EQ(said[1]["stats"]["mtp"]["effective"], "off");
  EXPECT_EQ(said[0]["ids"], said[1]["ids"]);
  EXPECT_EQ(said[0]["ids"], said[2]["ids"]);
  for (const std::string bad : {"9", "-1", "x", "1.5", "nan", "1 2", "0x1"}) {
    const Outcome outcome = chat("/depth " + bad + "\n/depth\nHello\n");
    EXPECT_EQ(outcome.status, 0);
    expect_parts(outcome.err, {"/depth: expected a whole number from 0 to 8, found \"" + bad + "\"", "depth 3\n"});
    EXPECT_FALSE(outcome.out.empty());
  }
}

TEST(Chat, MessagesOfSeveralLines) {
  const Json expected = generated(turn("user", "one\ntwo\n  three") + kAnswer);
  for (const std::string input : {"one\\\ntwo\\\n  three\n", "\"\"\"one\ntwo\n  three\"\"\"\n",
           "\"\"\"one\r\ntwo\r\n  three\"\"\"", "one\\\ntwo\\\n  three"}) {
    const auto said = answers(input);
    ASSERT_EQ(said.size(), 1u) << input;
    EXPECT_EQ(said[0]["ids"], expected) << input;
  }
  EXPECT_EQ(answers("\"\"\"/help\nme\"\"\"\n").at(0)["ids"], generated(turn("user", "/help\nme") + kAnswer));
  EXPECT_EQ(answers(" /help me\n").at(0)["ids"], generated(turn("user", " /help me") + kAnswer));
}

TEST(Chat, ASeedGivesEachTurnItsOwnNoise) {
  const Arguments sampled = {"--temperature", "1.2", "--seed", "5"};
  const auto said = answers("Hello\n/reset\nHello\n", sampled);
  EXPECT_EQ(said[0]["ids"], said[1]["ids"]);  // turn 0 again
  EXPECT_EQ(said[0]["ids"], generated(turn("user", "Hello") + kAnswer, sampled));
  const auto two = answers("Hello\nMore\n", sampled);
  EXPECT_EQ(two[1]["ids"],
      generated(turn("user", "Hello") + turn("assistant", two[0]["text"]) + turn("user", "More") + kAnswer,
          {"--temperature", "1.2", "--seed", "6"}));
}

TEST(Chat, AMessageThatCannotBeTakenLeavesTheConversationAsItWas) {
  const std::string much(20000, 'x');
  for (const auto& [bad, part] : std::vector<std::pair<std::string, std::string>>{
           {"\"\"\"" + much + "\"\"\"", "context"}, {"abc\xC3(", "UTF-8"}}) {
    Command command;
    command.input = "Hello\n" + bad + "\nMore\n";
    const Outcome outcome = foresay({"chat", kBundled, "--max-tokens", "12", "--json"}, command);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    expect_parts(outcome.err, {part});
    std::string expected;
    const auto good = answers("Hello\nMore\n");
    const std::string second = outcome.out.substr(outcome.out.find('\n') + 1);
    EXPECT_EQ(Json::parse(second)["ids"], good[1]["ids"]);
  }
}

TEST(Chat, AFullContextIsToldAndResetHelps) {
  TempDir dir;
  const auto folder = copy_bundled(dir.path() / "model");
  edit_json(folder / "config.json", [](auto& config) {
    (config.contains("text_config") ? config["text_config"] : config)["max_position_embeddings"] = 48;
  });
  const Outcome outcome = chat("Hello there\nAnd now\nAnd now\nAnd now\n/reset\nHello there\n",
      {"--json", "--max-tokens", "100"}, folder.string());
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_parts(outcome.err, {"the context of this checkpoint is 48", "/reset"});
  EXPECT_EQ(outcome.out.substr(0, 40), outcome.out.substr(outcome.out.rfind("{\"text\""), 40));
}

TEST(Chat, QuitAndTheEndOfTheInputLeave) {
  EXPECT_EQ(chat("").status, 0);
  EXPECT_EQ(chat("/quit\nHello\n").out, "");
  Command command;
  command.close_stdin = true;
  EXPECT_EQ(foresay({"chat", kBundled}, command).status, 0);
}

TEST(Chat, WhatItCannotHonourIsRefusedBeforeTheModelIsOpened) {
  for (const Arguments& bad : {Arguments{"--depth", "9"}, {"--temperature", "nan"}, {"--min-tokens", "400"},
           {"--system", "abc\xC3("}, {"--logit-bias", "x"}, {"--sampler-order", "top_p"}, {"--prompt", "x"}}) {
    Arguments arguments = {"chat", "/nonexistent"};
    arguments.insert(arguments.end(), bad.begin(), bad.end());
    expect_refused(arguments, 2, {bad[0]});
  }
  TempDir dir;
  const auto folder = copy_bundled(dir.path() / "model");
  fs::remove(folder / "chat_template.jinja");
  expect_refused({"chat", folder.string()}, 3, {"chat template"});
  expect_refused({"chat", write_tiny(dir.path() / "tiny", tiny()).string()}, 3, {"tokenizer.json"});
}

TEST(Chat, CtrlCInAPipedAnswerEndsTheAnswerAlone) {
  Command command;
  command.input = "Hello\n/depth\n";
  command.signal = SIGINT;
  const Outcome outcome = foresay({"chat", kBundled, "--max-tokens", "4000", "--min-tokens", "4000"}, command);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.signal, 0);
  expect_parts(outcome.err, {"depth 3\n"});
  EXPECT_FALSE(outcome.out.empty());
}

}  // namespace
}  // namespace foresay
