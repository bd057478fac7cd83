#include <algorithm>
#include <set>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/name_list.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/trunk_files.h"

namespace foresay {
namespace {

bool is_vision(const std::string& name) {
  for (const std::string_view prefix : {"model.visual.", "visual.", "model.vision_tower.", "vision_tower.",
           "vision_model.", "vit_large_projector.", "vit_downsampler"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

/// Gathers the shards of one folder into one set of names.
class TrunkReader {
 public:
  TrunkReader(const std::filesystem::path& folder, const TrunkFiles& files) : folder_(folder), files_(files) {}

  void add_shard(const std::string& shard) {
    const auto file = SafetensorsFile::open(folder_ / shard, [](const std::string& name) { return !is_vision(name); });
    for (const auto& name : file.left_out()) vision_.insert(name);
    for (const auto& [name, view] : file.tensors()) add_tensor(shard, name, view);
    result_.metadata.insert(file.metadata().begin(), file.metadata().end());
  }

  TrunkTensors finish(Report& report) {
    check_index(report);
    split();
    if (!unlisted_.empty()) {
      report.warn(
          fmt::format("[checkpoint] {} omits {} tensors that the shards hold ({}); they are used, download the index "
                      "again",
              kIndexFile, unlisted_.size(), list_names(unlisted_)));
    }
    if (!vision_.empty()) {
      report.note(
          fmt::format("[checkpoint] left out {} tensors of the vision tower: only text is run", vision_.size()));
    }
    return std::move(result_);
  }

 private:
  struct Found {
    std::string shard;
    TensorView view;
  };

  /// The shard that the index gives for a tensor; empty when it gives none.
  [[nodiscard]] std::string indexed_shard(const std::string& name) const {
    if (!files_.index) return {};
    const auto entry = files_.index->find(name);
    return entry == files_.index->end() ? std::string() : entry->second;
  }

  void add_tensor(const std::string& shard, const std::string& name, const TensorView& view) {
    const auto [earlier, is_new] = found_.emplace(name, Found{shard, view});
    const auto wanted = indexed_shard(name);
    if (is_new) {
      if (files_.index && wanted.empty()) unlisted_.push_back(name);
      return;
    }
    if (wanted == shard) {
      earlier->second = {shard, view};
    } else if (wanted != earlier->second.shard) {
      fail(ErrorCode::checkpoint,
          "[checkpoint] {}: expected {} in one shard, found it in {} and {}; remove the shard that does not belong "
          "here",
          folder_.string(), name, earlier->second.shard, shard);
    }
  }

  void check_index(Report& report) {
    if (!files_.index) return;
    std::map<std::string, std::vector<std::string>> lost_heads;  // by shard
    for (const auto& [name, shard] : *files_.index) {
      const auto found = found_.find(name);
      if ((found != found_.end() && found->second.shard == shard) || is_vision(name)) continue;
      if (!head_relative_name(name).empty()) {
        // A missing file was reported when the files were listed.
        const bool is_open = std::find(files_.shards.begin(), files_.shards.end(), shard) != files_.shards.end();
        if (is_open && found == found_.end()) lost_heads[shard].push_back(name);
        continue;
      }
      fail(ErrorCode::checkpoint,
          "[checkpoint] {}: expected {} in {}, found no such tensor there; the index is stale, download it and the "
          "shard again",
          (folder_ / kIndexFile).string(), name, shard);
    }
    for (const auto& [shard, names] : lost_heads) {
      report.warn(
          fmt::format("[checkpoint] {} places {} MTP tensors in {}, which lacks them ({}); they count as absent",
              kIndexFile, names.size(), shard, list_names(names)));
    }
  }

  void split() {
    for (auto& [name, found] : found_) {
      auto relative = head_relative_name(name);
      if (relative.empty()) {
        result_.trunk.emplace(name, std::move(found.view));
        continue;
      }
      if (result_.head_file.empty()) result_.head_file = found.shard;
      const auto [other, is_new] = result_.head.emplace(std::move(relative), found.view);
      if (!is_new) {
        fail(ErrorCode::checkpoint,
            "[checkpoint] {}: expected every MTP tensor once, found {} and {}; remove one of them", folder_.string(),
            other->second.name, name);
      }
    }
  }

  const std::filesystem::path& folder_;
  const TrunkFiles& files_;
  std::map<std::string, Found> found_;
  std::set<std::string> vision_;
  std::vector<std::string> unlisted_;
  TrunkTensors result_;
};

}  // namespace

TrunkTensors read_trunk(const std::filesystem::path& folder, const TrunkFiles& files, Report& report) {
  TrunkReader reader(folder, files);
  for (const auto& shard : files.shards) reader.add_shard(shard);
  return reader.finish(report);
}

}  // namespace foresay
