// decode/cost/measure_costs.h: timing a model's own passes and draft steps.
#pragma once

#include <functional>

#include "decode/cost/cost_model.h"
#include "model/model.h"

namespace foresay {

struct MeasureOptions {
  double budget_ms = 1500;                ///< of wall clock; what must be measured is, however long it takes
  std::function<double()> clock_ms = {};  ///< a clock that only goes forward; empty: the system's
};

/// Times passes over 1, 2, 4 and 8 rows and a draft step, each several times, and the same in a longer context; keeps
/// medians. Where the budget is short, repetitions go first, then the longer context, then 2 and 8 rows: a warm-up,
/// one pass of 1 and one of 4 rows and a draft step always run. The rows are dummies in caches of their own, undone
/// after each pass, so no sequence notices. Engine thread only, while nothing else runs on it.
///
/// Where too few positions fit into the budget to see what they cost a pass, the head's cache is filled instead, which
/// runs no layer: what a position costs the head's attention it costs every such layer of the trunk.
[[nodiscard]] CostModel measure_costs(const Model& model, const MeasureOptions& options = {});

}  // namespace foresay
