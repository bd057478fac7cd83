#include <unistd.h>

#include <cerrno>

#include "cli/chat/lines.h"
#include "cli/interrupt.h"

namespace foresay::cli {
namespace {

class PlainLines final : public Lines {
 public:
  Line next(const char* /*prompt*/) override {
    while (true) {
      const std::size_t end = waiting_.find('\n');
      if (end != std::string::npos || (ended_ && !waiting_.empty())) {
        Line line{Line::Kind::text, waiting_.substr(0, end), false};
        waiting_.erase(0, end == std::string::npos ? end : end + 1);
        if (line.text.ends_with('\r')) line.text.pop_back();
        return line;
      }
      if (ended_) return {Line::Kind::end, {}, false};
      char buffer[1 << 12];
      const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
      if (interrupted()) return {Line::Kind::interrupted, {}, waiting_.empty()};
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) ended_ = true;  // a closed stdin is an empty one
      if (count > 0) waiting_.append(buffer, static_cast<std::size_t>(count));
    }
  }
  void remember(const std::string& /*message*/) override {}
  [[nodiscard]] bool is_terminal() const override { return false; }

 private:
  std::string waiting_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Lines> plain_lines() {
  return std::make_unique<PlainLines>();
}

}  // namespace foresay::cli
