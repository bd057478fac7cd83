// checkpoint/json_text.h: JSON from files that nobody vouches for.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace foresay {

/// What a JSON text may hold.
struct JsonLimits {
  int depth = 64;               ///< nested arrays and objects; copying and printing a value recurse that deep
  bool duplicate_keys = false;  ///< true: the last one counts, as in Python; false: refused
};

/// Parses a whole text that must be one JSON object. Throws ErrorCode::checkpoint with line and column of the fault,
/// under "[area] file:".
[[nodiscard]] nlohmann::json parse_json_object(
    std::string_view text, std::string_view area, const std::string& file, const JsonLimits& limits);

/// The value as JSON, shortened to fit in a message, always valid UTF-8.
[[nodiscard]] std::string describe_json(const nlohmann::json& value);

}  // namespace foresay
