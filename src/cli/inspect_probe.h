// cli/inspect_probe.h: `inspect --probe`: how often the head agrees with its model, as it is wired and as it might be.
#pragma once

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/report.h"
#include "library/open_model.h"

namespace foresay::cli {

[[nodiscard]] nlohmann::ordered_json probe_json(const OpenModel& open, bool again, Report& report);
/// The same as lines of a key and a text.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> probe_lines(const nlohmann::ordered_json& probe);

}  // namespace foresay::cli
