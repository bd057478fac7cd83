// checkpoint/head_tensors.h: where a folder keeps its MTP head.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/report.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/trunk_files.h"

namespace foresay {

/// Files of the folder that hold a head and nothing else, the preferred one first: the one that config.json names under
/// mlx_lm_extra_tensors, then the names that conversion tools use. Throws ErrorCode::checkpoint when the config's path
/// leaves the folder.
[[nodiscard]] std::vector<std::string> list_side_files(
    const std::filesystem::path& folder, const Config& config, Report& report);

/// Takes the head from the first place that has tensors: side files in order, then the trunk's shards, then stray
/// model*.safetensors that hold nothing but a head. Warns when several places do. A side file that cannot be read
/// counts as such a place: its damage becomes HeadTensors::problem rather than a search for another head in its stead.
[[nodiscard]] HeadTensors find_head(const std::filesystem::path& folder, const std::vector<std::string>& side_files,
    TrunkTensors& trunk, std::vector<std::string>& strays, Report& report);

}  // namespace foresay
