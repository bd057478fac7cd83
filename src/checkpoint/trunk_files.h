// checkpoint/trunk_files.h: which files of a folder make up the trunk, and what lies in them.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/report.h"
#include "checkpoint/tensor_view.h"

namespace foresay {

/// The trunk's files and the index that names them. Paths are relative to the folder.
struct TrunkFiles {
  std::vector<std::string> shards;  ///< to be read, in order
  /// weight_map of model.safetensors.index.json, less the entries that name a side file of the head; empty without an
  /// index.
  std::optional<std::map<std::string, std::string>> index;
  std::vector<std::string> strays;  ///< other *.safetensors of the folder: neither shard nor side file
};

/// Picks the files: those the index names, and members of their set ("-of-00003") that it forgot; else
/// model.safetensors; else model*.safetensors, in order. Files in `side_files` belong to the head whatever the index
/// says. Throws ErrorCode::checkpoint when there are none, when a shard of trunk tensors is missing, or when the index
/// leaves the folder. Shards that would only hold head tensors may be missing, with a warning.
[[nodiscard]] TrunkFiles list_trunk_files(
    const std::filesystem::path& folder, const std::set<std::string>& side_files, Report& report);

/// What the trunk's files hold.
struct TrunkTensors {
  std::map<std::string, TensorView> trunk;
  std::map<std::string, TensorView> head;  ///< MTP tensors met among them, by name relative to the head
  std::string head_file;                   ///< the first file that holds one
  std::map<std::string, std::string> metadata;
};

/// Opens every shard and checks it against the index, both ways. Vision tensors are counted and dropped.
[[nodiscard]] TrunkTensors read_trunk(const std::filesystem::path& folder, const TrunkFiles& files, Report& report);

/// True when a path from a config or index stays inside the folder it is relative to. Only the text counts: the hub's
/// cache links its files elsewhere, and those links are fine.
[[nodiscard]] bool stays_inside(const std::string& path);

inline constexpr const char* kIndexFile = "model.safetensors.index.json";

}  // namespace foresay
