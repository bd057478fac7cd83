#include "cli/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace foresay::cli {
namespace {

/// False with errno set when not everything could be written.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

void write_out(std::string_view text) {
  if (!write_all(STDOUT_FILENO, text)) {
    fail(ErrorCode::capacity, "cannot write to stdout: {}", errno == EBADF ? "it is closed" : std::strerror(errno));
  }
}

void write_json(const nlohmann::ordered_json& document, int indent) {
  write_out(
      document.dump(indent, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void say(std::string_view text) {
  (void)write_all(STDERR_FILENO, text);
}

void say_report(const Report& report, bool json) {
  for (const std::string& text : report.warnings()) say(fmt::format("warning: {}\n", text));
  if (json) return;
  for (const std::string& text : report.notes()) say(fmt::format("note: {}\n", text));
}

void hold_standard_streams() {
  // open() gives the lowest free number, so going upwards each stand-in gets the place it is meant for.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    if (::open("/dev/null", stream == STDOUT_FILENO ? O_RDONLY : O_WRONLY) != stream) return;
  }
}

}  // namespace foresay::cli
