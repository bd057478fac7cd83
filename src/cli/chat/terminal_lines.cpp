// Editing by libedit. Characters are read here rather than by the library, because a wait for one has to end at Ctrl-C,
// and because input is UTF-8 whatever the locale says.
#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cwchar>

#include "cli/chat/history_file.h"
#include "cli/chat/lines.h"
#include "cli/interrupt.h"
#include "cli/output.h"

namespace foresay::cli {
namespace {

constexpr int kPollMs = 100;  // how late a signal that came just before the wait is noticed
constexpr int kMostHistory = 1000;
constexpr std::string_view kPasteEnd = "\033[201~";

constexpr unsigned char kEndOfFile = 4;  // Ctrl-D

// Terminals wrap what is pasted into ESC [200~ ... ESC [201~ while this is on.
constexpr std::string_view kPasteMarksOn = "\033[?2004h", kPasteMarksOff = "\033[?2004l";

volatile std::sig_atomic_t g_resized = 0, g_continued = 0;

/// The library turns characters into bytes by the locale: take the user's, or any that is UTF-8.
void use_utf8_locale() {
  if (std::setlocale(LC_CTYPE, "") != nullptr && MB_CUR_MAX > 1) return;
  for (const char* name : {"C.UTF-8", "en_US.UTF-8"}) {
    if (std::setlocale(LC_CTYPE, name) != nullptr) return;
  }
}

class TerminalLines final : public Lines {
 public:
  explicit TerminalLines(const std::string& history_file) : file_(history_file) {
    use_utf8_locale();
    editor_ = el_init("foresay", stdin, stderr, stderr);
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, kMostHistory);
    history(history_, &event, H_SETUNIQUE, 1);
    for (const std::string& entry : file_.load()) history(history_, &event, H_ENTER, entry.c_str());

    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_SIGNAL, 0);
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_PROMPT, &TerminalLines::prompt_of);
    el_set(editor_, EL_GETCFN, &TerminalLines::read_character);
    // The wide form, because the narrow one copies both texts and never frees them.
    el_wset(editor_, EL_ADDFN, L"foresay-paste", L"Insert a pasted block", &TerminalLines::paste);
    el_set(editor_, EL_BIND, "\\033[200~", "foresay-paste", nullptr);
    el_set(editor_, EL_BIND, "\\033[1~", "ed-move-to-beg", nullptr);  // Home, End, Delete as most terminals send them
    el_set(editor_, EL_BIND, "\\033[4~", "ed-move-to-end", nullptr);
    el_set(editor_, EL_BIND, "\\033[3~", "ed-delete-next-char", nullptr);
    el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    watch(SIGWINCH, [](int) { g_resized = 1; });
    watch(SIGCONT, [](int) { g_continued = 1; });
  }
  TerminalLines(const TerminalLines&) = delete;
  TerminalLines& operator=(const TerminalLines&) = delete;
  ~TerminalLines() override {
    el_end(editor_);
    history_end(history_);
  }

  Line next(const char* prompt) override {
    prompt_ = prompt;
    was_interrupted_ = false;
    el_set(editor_, EL_PREP_TERM, 1);  // before the prompt, which is when people and programs begin to type
    say(kPasteMarksOn);
    int count = 0;
    const char* const text = el_gets(editor_, &count);
    const LineInfo* const line = el_line(editor_);
    const bool empty = line->lastchar == line->buffer;
    say(kPasteMarksOff);
    if (was_interrupted_) {
      el_reset(editor_);
      say("^C\n");
      return {Line::Kind::interrupted, {}, empty};
    }
    if (text == nullptr || count <= 0) {
      say("\n");
      return {Line::Kind::end, {}, true};
    }
    std::string typed(text, static_cast<std::size_t>(count));
    while (typed.ends_with('\n')) typed.pop_back();
    return {Line::Kind::text, typed, false};
  }

  void remember(const std::string& message) override {
    if (message.empty()) return;
    HistEvent event;
    history(history_, &event, H_ENTER, message.c_str());
    file_.append(message);
  }

  [[nodiscard]] bool is_terminal() const override { return true; }

 private:
  static void watch(int signal, void (*handler)(int)) {
    struct sigaction action{};
    action.sa_handler = handler;
    ::sigaction(signal, &action, nullptr);
  }

  static TerminalLines& self(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return *static_cast<TerminalLines*>(data);
  }

  static char* prompt_of(EditLine* editor) { return const_cast<char*>(self(editor).prompt_); }

  /// 1 with a byte, 0 at the end of the file, -1 when Ctrl-C ended the wait.
  int read_byte(unsigned char& byte) {
    while (true) {
      if (interrupted()) {
        was_interrupted_ = true;
        return -1;
      }
      if (g_resized != 0) {
        g_resized = 0;
        el_resize(editor_);
      }
      if (g_continued != 0) {  // the shell has used the terminal meanwhile
        g_continued = 0;
        el_set(editor_, EL_PREP_TERM, 1);
        el_set(editor_, EL_REFRESH);
      }
      pollfd input = {STDIN_FILENO, POLLIN, 0};
      if (::poll(&input, 1, kPollMs) <= 0) continue;
      const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      return count == 1 ? 1 : 0;
    }
  }

  static int read_character(EditLine* editor, wchar_t* character) {
    TerminalLines& lines = self(editor);
    unsigned char byte = 0;
    int result = lines.read_byte(byte);
    if (result != 1) return result;
    if (byte == '\0') byte = kEndOfFile;  // what a Ctrl-D that was typed during an answer has become
    const int more = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : byte >= 0xC0 ? 1 : 0;
    std::uint32_t code = more == 0 ? byte : byte & (0x3Fu >> more);
    for (int i = 0; i < more && result == 1; ++i) {
      result = lines.read_byte(byte);
      code = (code << 6) | (byte & 0x3Fu);
    }
    *character = static_cast<wchar_t>(code);
    return result;
  }

  /// Everything up to the end mark goes into the line as it is, line ends too: a block is one message.
  static unsigned char paste(EditLine* editor, int /*character*/) {
    TerminalLines& lines = self(editor);
    std::string text;
    unsigned char byte = 0;
    while (!text.ends_with(kPasteEnd)) {
      if (lines.read_byte(byte) != 1) return CC_EOF;
      if (byte != '\0') text += static_cast<char>(byte);
    }
    text.resize(text.size() - kPasteEnd.size());
    std::ranges::replace(text, '\r', '\n');  // terminals send line ends as the Enter key
    while (text.ends_with('\n')) text.pop_back();
    return el_insertstr(editor, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  HistoryFile file_;
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
  const char* prompt_ = "";
  bool was_interrupted_ = false;
};

}  // namespace

std::unique_ptr<Lines> terminal_lines(const std::string& history_file) {
  return std::make_unique<TerminalLines>(history_file);
}

}  // namespace foresay::cli
