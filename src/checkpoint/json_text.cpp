#include "checkpoint/json_text.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/error.h"

namespace foresay {
namespace {

std::string position_in(std::string_view text, std::size_t offset) {
  const auto before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto line_start = before.rfind('\n');  // npos + 1 is 0: the first line starts the text
  return fmt::format("line {}, column {}", line, before.size() - (line_start + 1) + 1);
}

/// Offset of the bracket that goes deeper than `depth`, or npos. Runs before parsing, so that no text can exhaust
/// memory or stack by nesting.
std::size_t too_deep_at(std::string_view text, int depth) {
  int open = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++open > depth) return i;
    } else if (c == ']' || c == '}') {
      --open;
    }
  }
  return std::string_view::npos;
}

/// The parser's own words without its error number and position, printable.
std::string reason_of(const nlohmann::json::exception& error) {
  std::string reason = error.what();
  if (const auto id_end = reason.find("] "); id_end != std::string::npos) reason.erase(0, id_end + 2);
  if (const auto syntax = reason.find("syntax error"); syntax != std::string::npos) reason.erase(0, syntax);
  if (reason.size() > 160) reason.resize(160);  // it quotes what was last read, which may be megabytes
  std::replace_if(reason.begin(), reason.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return reason;
}

}  // namespace

nlohmann::json parse_json_object(
    std::string_view text, std::string_view area, const std::string& file, const JsonLimits& limits) {
  if (const auto at = too_deep_at(text, limits.depth); at != std::string_view::npos) {
    fail(ErrorCode::checkpoint,
        "[{}] {}: expected at most {} nested levels of JSON, found more at {}; download it again", area, file,
        limits.depth, position_in(text, at));
  }
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(value.get<std::string>()).second) {
      fail(ErrorCode::checkpoint, "[{}] {}: expected every key once, found {} twice; download it again", area, file,
          describe_json(value));
    }
    return true;
  };
  nlohmann::json object;
  try {
    object = limits.duplicate_keys ? nlohmann::json::parse(text) : nlohmann::json::parse(text, watch);
  } catch (const nlohmann::json::parse_error& error) {
    const auto at = error.byte > 0 ? error.byte - 1 : 0;
    fail(ErrorCode::checkpoint, "[{}] {}: expected valid JSON, found at {}: {}; correct it or download it again", area,
        file, position_in(text, at), reason_of(error));
  } catch (const nlohmann::json::exception& error) {  // a number beyond double's range
    fail(ErrorCode::checkpoint, "[{}] {}: expected valid JSON, found: {}; correct it or download it again", area, file,
        reason_of(error));
  }
  if (!object.is_object()) {
    fail(ErrorCode::checkpoint, "[{}] {}: expected a JSON object, found {}; download it again", area, file,
        describe_json(object));
  }
  return object;
}

std::string describe_json(const nlohmann::json& value) {
  constexpr std::size_t kMost = 60;
  if (value.is_array() && value.size() > 16) return fmt::format("an array of {} values", value.size());
  if (value.is_object()) return fmt::format("an object of {} keys", value.size());
  // Escaped to ASCII, so that cutting cannot split a character.
  auto text = value.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

}  // namespace foresay
