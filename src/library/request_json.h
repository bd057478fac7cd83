// library/request_json.h: the parts of a request that are JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "foresay/foresay.h"

namespace foresay {

/// `text` as a JSON object, keys in their order; empty text is an empty object. Throws ErrorCode::usage naming
/// `option`.
[[nodiscard]] nlohmann::ordered_json json_object(std::string_view option, std::string_view text);
/// The same for an array.
[[nodiscard]] nlohmann::ordered_json json_array(std::string_view option, std::string_view text);

[[nodiscard]] nlohmann::ordered_json json_of(const std::vector<Message>& messages);

}  // namespace foresay
