#include "checkpoint/head_tensors.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "checkpoint/name_list.h"
#include "checkpoint/safetensors.h"

namespace foresay {
namespace {

namespace fs = std::filesystem;

/// Tried in this order after the config's own. Published tools disagree on whether the first or the second comes first.
constexpr const char* kSideFiles[] = {
    "mtp/weights.safetensors", "mtp.safetensors", "model-mtp.safetensors", "model-mtp-head.safetensors"};

/// Names only the trunk uses: a config that says its head lies in one of these means the trunk's own shards.
bool is_trunk_name(const std::string& name) {
  return name == "model.safetensors" || (name.starts_with("model-") && name.find("-of-") != std::string::npos);
}

std::optional<std::string> configured_side_file(const fs::path& folder, const Config& config, Report& report) {
  const auto extra = config.maybe_object("mlx_lm_extra_tensors");
  if (!extra) return std::nullopt;
  const auto file = extra->maybe_string("mtp_file");
  if (!file || file->empty()) return std::nullopt;
  if (!stays_inside(*file)) {
    fail(ErrorCode::checkpoint,
        "[checkpoint] {}: mtp_file: expected a file inside the folder, found \"{}\"; correct the file", extra->where(),
        *file);
  }
  auto name = fs::path(*file).lexically_normal().generic_string();
  if (is_trunk_name(name)) return std::nullopt;
  if (!fs::exists(folder / name)) {
    report.warn(fmt::format(
        "[checkpoint] {}: mtp_file names {}, which does not exist; other places are searched", extra->where(), name));
    return std::nullopt;
  }
  return name;
}

/// False when the index gave the head a file that holds nothing else under a name of its own.
bool lies_among_trunk(const TrunkTensors& trunk) {
  if (trunk.head.empty()) return false;
  const auto& file = trunk.head.begin()->second.file;
  return is_trunk_name(trunk.head_file) || std::any_of(trunk.trunk.begin(), trunk.trunk.end(),
                                               [&](const auto& tensor) { return tensor.second.file == file; });
}

/// One place that has head tensors.
struct Source {
  std::map<std::string, TensorView> tensors;
  std::map<std::string, std::string> metadata;
  std::string problem;  ///< why it cannot be read
};

/// A side file holds nothing but the head, so its names may lack the prefix.
Source read_side_file(const fs::path& path) {
  const auto file = SafetensorsFile::open(path);
  Source source{.tensors = {}, .metadata = file.metadata(), .problem = {}};
  for (const auto& [name, view] : file.tensors()) {
    const auto relative = head_relative_name(name);
    const auto [other, is_new] = source.tensors.emplace(relative.empty() ? name : relative, view);
    if (!is_new) {
      fail(ErrorCode::checkpoint,
          "[checkpoint] {}: expected every MTP tensor once, found {} and {}; remove one of them", path.string(),
          other->second.name, name);
    }
  }
  return source;
}

/// What `read` throws about a damaged file, in words; empty when it succeeds. A lack of memory is no damage.
template <typename Read>
std::string problem_of(Read read) {
  try {
    read();
    return {};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::checkpoint) throw;
    return error.what();
  }
}

/// True when every tensor of a file carries a head prefix. A stray that cannot be read is no head.
bool holds_only_a_head(const fs::path& path) {
  try {
    const auto file =
        SafetensorsFile::open(path, [](const std::string& name) { return head_relative_name(name).empty(); });
    return file.tensors().empty() && !file.left_out().empty();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string head_relative_name(const std::string& name) {
  for (const std::string_view prefix : {"language_model.model.mtp.", "model.language_model.mtp.", "language_model.mtp.",
           "model.model.mtp.", "model.mtp.", "mtp."}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return {};
}

std::vector<std::string> list_side_files(const fs::path& folder, const Config& config, Report& report) {
  std::vector<std::string> files;
  const auto add = [&files](std::string name) {
    if (std::find(files.begin(), files.end(), name) == files.end()) files.push_back(std::move(name));
  };
  if (auto name = configured_side_file(folder, config, report)) add(std::move(*name));
  for (const auto* name : kSideFiles) {
    if (fs::exists(folder / name)) add(name);
  }
  std::set<std::string> suffixed;  // sorted: the order of a folder's entries is not defined
  for (const auto& entry : fs::directory_iterator(folder)) {
    auto name = entry.path().filename().string();
    if (name.ends_with(".mtp.safetensors") && !name.starts_with('.')) suffixed.insert(std::move(name));
  }
  for (const auto& name : suffixed) add(name);
  return files;
}

HeadTensors find_head(const fs::path& folder, const std::vector<std::string>& side_files, TrunkTensors& trunk,
    std::vector<std::string>& strays, Report& report) {
  HeadTensors head;
  std::vector<std::string> unused;  // other places that hold a head too
  const auto offer = [&](const std::string& name, Source source) {
    if (source.tensors.empty() && source.problem.empty()) return;
    if (!head.found_in.empty()) {
      unused.push_back(source.problem.empty() ? name : name + " (unreadable)");
      return;
    }
    head.tensors = std::move(source.tensors);
    head.metadata = std::move(source.metadata);
    head.problem = std::move(source.problem);
    head.found_in = name;
  };
  for (const auto& name : side_files) {
    Source source;
    source.problem = problem_of([&] { source = read_side_file(folder / name); });
    offer(name, std::move(source));
  }
  if (!head.tensors.empty()) {
    const auto manifest = (folder / head.found_in).parent_path() / "manifest.json";
    if (fs::exists(manifest)) head.problem = problem_of([&] { head.manifest = Config::read(manifest); });
  }
  head.in_trunk_shards = head.found_in.empty() && lies_among_trunk(trunk);
  offer(trunk.head_file, {.tensors = std::move(trunk.head), .metadata = trunk.metadata, .problem = {}});
  for (auto stray = strays.begin(); head.found_in.empty() && stray != strays.end(); ++stray) {
    if (!stray->starts_with("model") || !holds_only_a_head(folder / *stray)) continue;
    offer(*stray, read_side_file(folder / *stray));
    strays.erase(stray);
    break;
  }
  if (!unused.empty()) {
    report.warn(fmt::format(
        "[checkpoint] several files hold an MTP head: {} comes first, {} ignored; remove those you do not want",
        head.found_in, list_names(unused)));
  }
  return head;
}

}  // namespace foresay
