// library/costs.h: what a loaded model's passes cost here, measured once per checkpoint, machine and build.
#pragma once

#include <filesystem>

#include "base/report.h"
#include "checkpoint/checkpoint.h"
#include "decode/cost/cost_cache.h"
#include "decode/cost/measure_costs.h"

namespace foresay {

struct CostsOptions {
  bool measure_again = false;  ///< also where the cache has an entry
  MeasureOptions measure = {};
};

struct Costs {
  CostModel model;
  bool from_cache = false;
  std::filesystem::path file;  ///< the cache's entry; empty where nothing is kept
};

/// Files by name, size and time, and whether the head is in use; reads no weights.
[[nodiscard]] CostKey cost_key(const Checkpoint& checkpoint, const Model& model);

/// From the cache, or measured (under 2 s by default on a model whose passes are short) and put there. What goes wrong
/// with the cache is a warning in `report`. Engine thread only.
[[nodiscard]] Costs find_costs(
    const Checkpoint& checkpoint, const Model& model, Report& report, const CostsOptions& options = {});

}  // namespace foresay
