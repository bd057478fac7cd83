#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <limits>
#include <system_error>

#include "base/error.h"
#include "checkpoint/head_tensors.h"
#include "checkpoint/name_list.h"
#include "checkpoint/trunk_files.h"

namespace foresay {
namespace {

namespace fs = std::filesystem;

void check_folder(const fs::path& folder) {
  std::error_code error;
  const auto status = fs::status(folder, error);
  if (!fs::exists(status)) {
    fail(ErrorCode::usage, "[checkpoint] {}: expected a model folder, found {}; check the path", folder.string(),
        status.type() == fs::file_type::not_found ? "nothing there" : error.message());
  }
  if (!fs::is_directory(status)) {
    fail(ErrorCode::usage,
        "[checkpoint] {}: expected a model folder, found a file; give the folder that holds config.json",
        folder.string());
  }
}

Config read_if_present(const fs::path& path) {
  return fs::exists(path) ? Config::read(path) : Config();
}

void add_eos_ids(const Config& config, std::vector<int>& ids) {
  if (!config.has("eos_token_id")) return;
  const auto& value = config.json().at("eos_token_id");
  const auto add = [&](const nlohmann::json& item) {
    if (item.is_string()) return;  // token text: only the tokenizer knows its id
    const Config single(nlohmann::json{{"eos_token_id", item}}, config.where());
    const int id = single.integer("eos_token_id", 0, std::numeric_limits<int>::max());
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  };
  if (!value.is_array()) return add(value);
  for (const auto& item : value) add(item);
}

}  // namespace

Checkpoint Checkpoint::open(const fs::path& folder, Report& report) {
  check_folder(folder);
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  try {
    if (!fs::exists(folder / "config.json")) {
      fail(ErrorCode::checkpoint,
          "[checkpoint] {}: expected config.json in the folder, found none; download the whole model", folder.string());
    }
    checkpoint.config_ = Config::read(folder / "config.json");
    checkpoint.text_config_ = checkpoint.config_.maybe_object("text_config").value_or(checkpoint.config_);
    checkpoint.generation_config_ = read_if_present(folder / "generation_config.json");
    checkpoint.tokenizer_config_ = read_if_present(folder / "tokenizer_config.json");

    const auto side_files = list_side_files(folder, checkpoint.config_, report);
    auto files = list_trunk_files(folder, {side_files.begin(), side_files.end()}, report);
    auto tensors = read_trunk(folder, files, report);
    checkpoint.head_ = find_head(folder, side_files, tensors, files.strays, report);
    checkpoint.trunk_ = std::move(tensors.trunk);
    checkpoint.trunk_metadata_ = std::move(tensors.metadata);
    if (!files.strays.empty()) {
      report.note(fmt::format("[checkpoint] ignored {}: not among the model's shards", list_names(files.strays)));
    }
  } catch (const fs::filesystem_error& error) {  // no permission, a name that is too long
    fail(
        ErrorCode::checkpoint, "[checkpoint] {}: expected a readable folder, found: {}", folder.string(), error.what());
  }
  if (checkpoint.trunk_.empty()) {
    fail(ErrorCode::checkpoint,
        "[checkpoint] {}: expected the tensors of a language model, found none; download it again", folder.string());
  }
  return checkpoint;
}

std::size_t Checkpoint::mapped_bytes() const {
  std::size_t bytes = 0;
  for (const auto* tensors : {&trunk_, &head_.tensors}) {
    for (const auto& [name, view] : *tensors) bytes += view.bytes;
  }
  return bytes;
}

std::vector<int> declared_eos_ids(const Checkpoint& checkpoint) {
  std::vector<int> ids;
  add_eos_ids(checkpoint.config(), ids);
  add_eos_ids(checkpoint.text_config(), ids);
  add_eos_ids(checkpoint.generation_config(), ids);
  return ids;
}

}  // namespace foresay
