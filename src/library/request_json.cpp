#include "library/request_json.h"

#include "base/error.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 64;  // copying and printing a value recurse that deep

Json parse(std::string_view option, std::string_view text) {
  bool too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kDeepest;
    return !too_deep;
  };
  Json value;
  try {
    value = Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    fail(ErrorCode::usage, "{}: expected JSON, found a fault at byte {}", option, error.byte);
  }
  if (too_deep) fail(ErrorCode::usage, "{}: expected JSON at most {} levels deep, found more", option, kDeepest);
  return value;
}

}  // namespace

Json json_object(std::string_view option, std::string_view text) {
  if (text.empty()) return Json::object();
  Json value = parse(option, text);
  if (!value.is_object()) fail(ErrorCode::usage, "{}: expected a JSON object, found {}", option, value.type_name());
  return value;
}

Json json_array(std::string_view option, std::string_view text) {
  Json value = parse(option, text);
  if (!value.is_array()) fail(ErrorCode::usage, "{}: expected a JSON array, found {}", option, value.type_name());
  return value;
}

Json json_of(const std::vector<Message>& messages) {
  Json array = Json::array();
  for (const Message& message : messages) array.push_back({{"role", message.role}, {"content", message.content}});
  return array;
}

}  // namespace foresay
