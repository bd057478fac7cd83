// cli/inspect_cost.h: `inspect --cost`: what passes and drafts cost here, and what drafting gains at that.
#pragma once

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/report.h"
#include "checkpoint/checkpoint.h"
#include "model/model.h"

namespace foresay::cli {

struct CostOptions {
  bool wanted = false;
  bool again = false;           ///< measure although the cache has an entry
  std::string acceptance_text;  ///< "0.85,0.72,0.60"; empty: break-even instead of speed
  std::vector<double> acceptance;
  int context = 512;  ///< positions that the figures are for
};

void add_cost_options(CLI::App& app, CostOptions& options);

/// Reads the acceptance. Throws ErrorCode::usage.
void check_cost_options(CostOptions& options);

[[nodiscard]] nlohmann::ordered_json cost_json(
    const Checkpoint& checkpoint, const Model& model, Report& report, const CostOptions& options);
/// The same as lines of a key and a text.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> cost_lines(const nlohmann::ordered_json& cost);

}  // namespace foresay::cli
