#include "checkpoint/trunk_files.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"
#include "checkpoint/json_text.h"
#include "checkpoint/name_list.h"

namespace foresay {
namespace {

namespace fs = std::filesystem;

/// "model-00002-of-00003.safetensors": one file of a set whose size its name tells.
struct ShardName {
  std::string stem;  // "model"
  int number = 0, count = 0;
};

std::optional<ShardName> parse_shard_name(std::string_view name) {
  constexpr std::string_view kEnd = ".safetensors";
  if (!name.ends_with(kEnd)) return std::nullopt;
  name.remove_suffix(kEnd.size());
  const auto take_number = [&name](std::string_view before) -> std::optional<int> {
    const auto start = name.rfind(before);
    if (start == std::string_view::npos) return std::nullopt;
    const auto digits = name.substr(start + before.size());
    if (digits.empty() || digits.size() > 6) return std::nullopt;
    int value = 0;
    for (const char c : digits) {
      if (std::isdigit(static_cast<unsigned char>(c)) == 0) return std::nullopt;
      value = value * 10 + (c - '0');
    }
    name = name.substr(0, start);
    return value;
  };
  const auto count = take_number("-of-");
  if (!count) return std::nullopt;
  const auto number = take_number("-");
  if (!number) return std::nullopt;
  return ShardName{std::string(name), *number, *count};
}

/// Names of the *.safetensors files directly in the folder, sorted.
std::set<std::string> list_safetensors(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".safetensors") && !name.starts_with('.')) names.insert(name);
  }
  return names;
}

std::map<std::string, std::string> read_index(const fs::path& path) {
  const auto weight_map = Config::read(path).object("weight_map");
  std::map<std::string, std::string> index;
  for (const auto& [tensor, file] : weight_map.json().items()) {
    if (!file.is_string()) {
      fail(ErrorCode::checkpoint, "[checkpoint] {}: {}: expected a file name, found {}; download the index again",
          path.string(), tensor, describe_json(file));
    }
    const auto name = file.get<std::string>();
    if (!stays_inside(name)) {
      fail(ErrorCode::checkpoint, "[checkpoint] {}: {}: expected a file inside the folder, found {}; correct the index",
          path.string(), tensor, describe_json(file));
    }
    index[tensor] = fs::path(name).lexically_normal().generic_string();
  }
  if (index.empty()) {
    fail(ErrorCode::checkpoint, "[checkpoint] {}: expected tensors in weight_map, found none; download the index again",
        path.string());
  }
  return index;
}

/// The files that the index names and that exist. A missing one is an error unless it would hold nothing but head
/// tensors.
std::set<std::string> existing_index_files(
    const fs::path& folder, const std::map<std::string, std::string>& index, Report& report) {
  std::map<std::string, std::vector<std::string>> tensors_of;
  for (const auto& [tensor, file] : index) tensors_of[file].push_back(tensor);
  std::set<std::string> files;
  for (const auto& [file, tensors] : tensors_of) {
    if (fs::exists(folder / file)) {
      files.insert(file);
      continue;
    }
    const auto trunk = std::find_if(
        tensors.begin(), tensors.end(), [](const std::string& name) { return head_relative_name(name).empty(); });
    if (trunk != tensors.end()) {
      fail(ErrorCode::checkpoint,
          "[checkpoint] {}: expected {}, which holds {} of the index's tensors ({} is one), found no such file; the "
          "index is "
          "stale or the download incomplete: download both again, or remove the index if the other files are complete",
          (folder / kIndexFile).string(), file, tensors.size(), *trunk);
    }
    report.warn(fmt::format("[checkpoint] {} places {} MTP tensors in {}, which does not exist; they count as absent",
        kIndexFile, tensors.size(), file));
  }
  return files;
}

/// Members of the same sets as `files` ("model-00003-of-00003" beside "model-00001-of-00003"): an index that omits one
/// of them is incomplete.
void add_forgotten_members(std::set<std::string>& files, std::set<std::string>& others, Report& report) {
  std::set<std::pair<std::string, int>> sets;
  for (const auto& file : files) {
    if (const auto name = parse_shard_name(file)) sets.emplace(name->stem, name->count);
  }
  for (auto it = others.begin(); it != others.end();) {
    const auto name = parse_shard_name(*it);
    if (name && sets.contains({name->stem, name->count})) {
      report.note(
          fmt::format("[checkpoint] {} is read although {} does not name it: its name says that it belongs to the set",
              *it, kIndexFile));
      files.insert(*it);
      it = others.erase(it);
    } else {
      ++it;
    }
  }
}

void check_complete_set(const fs::path& folder, const std::set<std::string>& files) {
  std::map<std::pair<std::string, int>, std::set<int>> numbers_of;
  for (const auto& file : files) {
    if (const auto name = parse_shard_name(file)) numbers_of[{name->stem, name->count}].insert(name->number);
  }
  for (const auto& [set, numbers] : numbers_of) {
    for (int number = 1; number <= set.second; ++number) {
      if (numbers.contains(number)) continue;
      fail(ErrorCode::checkpoint,
          "[checkpoint] {}: expected {} shards of {}-*.safetensors, found {}; number {} is missing, "
          "download it again",
          folder.string(), set.second, set.first, numbers.size(), number);
    }
  }
}

[[noreturn]] void refuse_without_weights(const fs::path& folder, const std::set<std::string>& others) {
  fail(ErrorCode::checkpoint,
      "[checkpoint] {}: expected {}, model.safetensors or model*.safetensors, found {}; download the weights in "
      "safetensors format",
      folder.string(), kIndexFile,
      others.empty() ? "no safetensors files" : list_names({others.begin(), others.end()}));
}

}  // namespace

bool stays_inside(const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  return !path.empty() && path.find('\0') == std::string::npos && normal.is_relative() && *normal.begin() != ".." &&
         normal.has_filename() && normal != ".";
}

TrunkFiles list_trunk_files(const fs::path& folder, const std::set<std::string>& side_files, Report& report) {
  TrunkFiles result;
  auto others = list_safetensors(folder);
  for (const auto& file : side_files) others.erase(file);

  std::set<std::string> shards;
  if (fs::exists(folder / kIndexFile)) {
    result.index = read_index(folder / kIndexFile);
    std::erase_if(*result.index, [&](const auto& entry) { return side_files.contains(entry.second); });
    shards = existing_index_files(folder, *result.index, report);
    for (const auto& file : shards) others.erase(file);
    add_forgotten_members(shards, others, report);
  } else if (others.contains("model.safetensors")) {
    shards.insert("model.safetensors");
    others.erase("model.safetensors");
  } else {
    for (const auto& name : others) {
      if (name.starts_with("model")) shards.insert(name);
    }
    for (const auto& name : shards) others.erase(name);
    check_complete_set(folder, shards);
  }
  if (shards.empty()) refuse_without_weights(folder, others);
  result.shards.assign(shards.begin(), shards.end());
  result.strays.assign(others.begin(), others.end());
  return result;
}

}  // namespace foresay
