// decode/sample/shape.h: logits -> distribution: filters and temperature, in the order that was asked for.
#pragma once

#include "decode/sample/distribution.h"
#include "decode/sample/row.h"
#include "foresay/sampling.h"

namespace foresay {

/// Applies the steps of options.order to one row of logits [V]. Each filter looks at what the steps before it left, as
/// a distribution of its own; ids at or above vocab_limit have no mass. Greedy gives all mass to the peak.
/// A row that no filter touches is not copied: the distribution looks at it.
///   xtc  whether the row's coin fell for xtc; without it that step does nothing
/// Throws ErrorCode::internal when no token can be drawn (row_problem).
[[nodiscard]] Distribution shape(LogitRow row, const SamplingOptions& options, bool xtc = false);

/// The same for a row whose peak below vocab_limit is known.
[[nodiscard]] Distribution shape(LogitRow row, Peak peak, const SamplingOptions& options, bool xtc);

}  // namespace foresay
