#include "cli/chat/message.h"

namespace foresay::cli {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr const char* kPrompt = "> ";
constexpr const char* kMore = ". ";

}  // namespace

Line read_message(Lines& lines) {
  Line message = lines.next(kPrompt);
  if (message.kind != Line::Kind::text || message.text.find('\n') != std::string::npos) return message;

  std::string& text = message.text;
  const bool quoted = text.starts_with(kQuotes);
  if (quoted) text.erase(0, kQuotes.size());
  while (quoted ? !text.ends_with(kQuotes) : text.ends_with('\\')) {
    if (!quoted) text.pop_back();
    const Line more = lines.next(kMore);
    if (more.kind == Line::Kind::interrupted) return {more.kind, {}, /*was_empty=*/false};
    if (more.kind == Line::Kind::end) return message;
    text += "\n" + more.text;
  }
  if (quoted) text.resize(text.size() - kQuotes.size());
  return message;
}

}  // namespace foresay::cli
