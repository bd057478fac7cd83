// foresay chat on a terminal: editing, history, pasted blocks, Ctrl-C.
#include <sys/stat.h>

#include "cli/program.h"
#include "fixtures/terminal.h"

namespace foresay {
namespace {

class ChatTerminal : public ::testing::Test {
 protected:
  Command command(Arguments more = {}) {
    Command chat;
    chat.program = FORESAY_PROGRAM;
    chat.arguments = {"chat", kBundled, "--threads", "1", "--max-tokens", more.empty() ? "8" : "4000"};
    chat.arguments.insert(chat.arguments.end(), more.begin(), more.end());
    chat.environment = {{"XDG_STATE_HOME", (dir_.path() / "state").string()}, {"LC_ALL", "C.UTF-8"}};
    return chat;
  }
  [[nodiscard]] std::string history() const {
    const auto file = dir_.path() / "state" / "foresay" / "history";
    return fs::exists(file) ? read_text(file) : "";
  }

  TempDir dir_;
};

TEST_F(ChatTerminal, AnswersWithStatisticsAndLeavesAtCtrlD) {
  Terminal terminal(command());
  ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
  terminal.type("Hello\r");
  ASSERT_TRUE(terminal.shows(" tokens, ")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("acceptance ")) << terminal.screen();
  EXPECT_NE(terminal.raw().find("\033[2m["), std::string::npos);
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("/stats\r");
  ASSERT_TRUE(terminal.shows("1 answers, ")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("\x04");
  EXPECT_EQ(terminal.status(), 0) << terminal.screen();
}

TEST_F(ChatTerminal, WhatIsTypedDuringAnAnswerIsReadAfterIt) {
  Terminal terminal(command());
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("Hello\r/stats\r\x04");
  ASSERT_TRUE(terminal.shows("1 answers, ")) << terminal.screen();
  EXPECT_EQ(terminal.status(), 0) << terminal.screen();
}

TEST_F(ChatTerminal, HistoryIsEditedKeptBetweenRunsAndPrivate) {
  {
    Terminal terminal(command());
    ASSERT_TRUE(terminal.shows("> "));
    terminal.type("/system caf\xC3\xA9 \xE4\xBD\xA0\r");
    ASSERT_TRUE(terminal.shows("holds from the next answer")) << terminal.screen();
    ASSERT_TRUE(terminal.shows("> "));
    terminal.type("\033[A\r");  // up
    ASSERT_TRUE(terminal.shows("holds from the next answer")) << terminal.screen();
    ASSERT_TRUE(terminal.shows("> "));
    terminal.type("/sytem\033[D\033[D\033[Ds\r");  // the cursor goes back to put in what was forgotten
    ASSERT_TRUE(terminal.shows("system message: caf\xC3\xA9 \xE4\xBD\xA0")) << terminal.screen();
    ASSERT_TRUE(terminal.shows("> "));
    terminal.type("/quit\r");
    EXPECT_EQ(terminal.status(), 0);
  }
  EXPECT_EQ(history(), "/system caf\xC3\xA9 \xE4\xBD\xA0\n/system caf\xC3\xA9 \xE4\xBD\xA0\n/system\n/quit\n");
  struct stat status{};
  ASSERT_EQ(::stat((dir_.path() / "state" / "foresay" / "history").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);

  Terminal again(command());
  ASSERT_TRUE(again.shows("> "));
  again.type("\033[A\033[A\033[A\r");  // /quit, /system, /system café
  ASSERT_TRUE(again.shows("holds from the next answer")) << again.screen();
}

TEST_F(ChatTerminal, WithoutHistoryNothingIsWritten) {
  Terminal terminal(command({"--no-history"}));
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("/quit\r");
  EXPECT_EQ(terminal.status(), 0);
  EXPECT_FALSE(fs::exists(dir_.path() / "state"));
}

TEST_F(ChatTerminal, APastedBlockIsOneMessage) {
  Terminal terminal(command());
  ASSERT_TRUE(terminal.shows("> "));
  EXPECT_NE(terminal.raw().find("\033[?2004h"), std::string::npos);    // the terminal is asked to mark pasted text
  terminal.type("\033[200~def f():\r    return 1\r/quit\r\033[201~");  // a terminal sends line ends as Enter
  ASSERT_TRUE(terminal.shows("/quit")) << terminal.screen();
  terminal.type("\r");
  ASSERT_TRUE(terminal.shows(" tokens/s")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("/stats\r");
  ASSERT_TRUE(terminal.shows("1 answers, ")) << terminal.screen();
  EXPECT_EQ(history(), "def f():\\n    return 1\\n/quit\n/stats\n");
}

TEST_F(ChatTerminal, CtrlCStopsTheAnswerNotTheProgram) {
  Terminal terminal(command({"--min-tokens", "4000"}));
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("def main\r");
  ASSERT_TRUE(terminal.shows("\n")) << terminal.screen();
  ASSERT_TRUE(terminal.shows(" ")) << terminal.screen();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows(" tokens/s")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("> ")) << terminal.screen();
  terminal.type("/quit\r");
  EXPECT_EQ(terminal.status(), 0);
}

TEST_F(ChatTerminal, CtrlCClearsTheLineAndLeavesTheSecondTime) {
  Terminal terminal(command());
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("half a thought");
  ASSERT_TRUE(terminal.shows("thought"));
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows("^C"));
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("/depth 2\r");
  ASSERT_TRUE(terminal.shows("depth 2")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("depth 2")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows("Ctrl-C again leaves")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("\x03");
  EXPECT_EQ(terminal.status(), 130) << terminal.screen();
}

TEST_F(ChatTerminal, LinesThatGoOnHaveAnotherPrompt) {
  Terminal terminal(command());
  ASSERT_TRUE(terminal.shows("> "));
  terminal.type("\"\"\"one\r");
  ASSERT_TRUE(terminal.shows(". ")) << terminal.screen();
  terminal.type("two\"\"\"\r");
  ASSERT_TRUE(terminal.shows(" tokens/s")) << terminal.screen();
  EXPECT_EQ(history(), "one\\ntwo\n");
}

}  // namespace
}  // namespace foresay
