// cli/lane.h: the options of the lane: --lane, --device, --threads, --cpu-activations.
#pragma once

#include <CLI/App.hpp>

#include "library/lane.h"

namespace foresay::cli {

void add_lane_options(CLI::App& app, LaneOptions& options);

}  // namespace foresay::cli
