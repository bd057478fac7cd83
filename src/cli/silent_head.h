// cli/silent_head.h: a head that was loaded and never drafted, because its logits are not finite.
#pragma once

#include <string>

#include "cli/open_model.h"

namespace foresay::cli {

/// As unusable as a head that does not load, and treated as --mtp says: throws as a load does, or warns on stderr and
/// gives the reason back. Searches the weights for what is to blame.
std::string refuse_silent_head(const ModelOptions& options, const OpenModel& open, const char* verb);

}  // namespace foresay::cli
