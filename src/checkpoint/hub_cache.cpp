// The layout that huggingface_hub writes:
//   models--org--name/refs/<branch or tag>      one line, the commit it stands for
//   models--org--name/snapshots/<commit>/       the files, as links into blobs/
#include "checkpoint/hub_cache.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <regex>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "checkpoint/name_list.h"

namespace foresay {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShortestPrefix = 4;  // of a commit; shorter ones are more likely a mistyped branch

struct HubName {
  std::string org, name, revision;  ///< revision empty: main

  [[nodiscard]] std::string folder() const { return "models--" + org + "--" + name; }
  [[nodiscard]] std::string id() const { return org + "/" + name; }
};

std::optional<HubName> parse(const std::string& text) {
  static const std::regex pattern(
      "([A-Za-z0-9_][A-Za-z0-9._-]*)/([A-Za-z0-9_][A-Za-z0-9._-]*)(?:@([A-Za-z0-9._/-]+))?");
  std::smatch parts;
  constexpr std::size_t kLongest = 256;  // std::regex recurses over its input
  if (text.size() > kLongest || !std::regex_match(text, parts, pattern)) return std::nullopt;
  return HubName{parts[1], parts[2], parts[3]};
}

std::optional<fs::path> folder_in_environment(const char* variable) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string_view text = value;
  const char* const home = std::getenv("HOME");
  if (text.starts_with("~/") && home != nullptr) return fs::path(home) / text.substr(2);
  return fs::path(text);
}

/// Names in `folder`, of folders in it too where `deep` ("pr/1"), sorted; none where it cannot be read.
std::vector<std::string> names_in(const fs::path& folder, bool deep) {
  std::vector<std::string> names;
  std::error_code error;
  if (deep) {
    for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      std::error_code ignored;
      if (at->is_regular_file(ignored)) names.push_back(at->path().lexically_relative(folder).generic_string());
    }
  } else {
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      std::error_code ignored;
      if (at->is_directory(ignored)) names.push_back(at->path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The commit that a branch or tag stands for; empty without such a one.
std::string read_ref(const fs::path& refs, const std::string& revision) {
  if (revision.find("..") != std::string::npos || revision.starts_with('/')) return {};  // stays inside the cache
  std::error_code ignored;
  if (!fs::is_regular_file(refs / revision, ignored)) return {};
  std::string commit;
  std::ifstream(refs / revision) >> commit;
  return commit.find('/') == std::string::npos ? commit : std::string();
}

std::string what_is_there(const std::vector<std::string>& refs, const std::vector<std::string>& snapshots) {
  if (snapshots.empty()) return "no snapshot at all";
  std::string text = "commits " + list_names(snapshots);
  if (!refs.empty()) text = "revisions " + list_names(refs) + " and " + text;
  return text;
}

/// The snapshot's folder name for a revision.
std::string find_commit(const HubName& model, const fs::path& folder) {
  const std::string revision = model.revision.empty() ? "main" : model.revision;
  const auto snapshots = names_in(folder / "snapshots", /*deep=*/false);
  if (const std::string commit = read_ref(folder / "refs", revision); !commit.empty()) return commit;
  std::vector<std::string> matches;
  if (revision.size() >= kShortestPrefix) {
    std::copy_if(snapshots.begin(), snapshots.end(), std::back_inserter(matches),
        [&](const std::string& commit) { return commit.starts_with(revision); });
  }
  if (matches.size() == 1) return matches.front();
  if (matches.size() > 1) {
    fail(ErrorCode::usage, "[checkpoint] {}: expected one commit that begins with {}, found {} in {}; give more of it",
        model.id(), revision, list_names(matches), (folder / "snapshots").string());
  }
  fail(ErrorCode::usage,
      "[checkpoint] {}: expected revision {} in {}, found {}; choose one as {}@REVISION, or fetch it with `hf download "
      "{} --revision {}`",
      model.id(), revision, folder.string(), what_is_there(names_in(folder / "refs", /*deep=*/true), snapshots),
      model.id(), model.id(), revision);
}

}  // namespace

fs::path hub_cache_folder() {
  if (const auto folder = folder_in_environment("HF_HUB_CACHE")) return *folder;
  if (const auto folder = folder_in_environment("HF_HOME")) return *folder / "hub";
  if (const auto folder = folder_in_environment("XDG_CACHE_HOME")) return *folder / "huggingface" / "hub";
  if (const auto folder = folder_in_environment("HOME")) return *folder / ".cache" / "huggingface" / "hub";
  fail(ErrorCode::usage,
      "[checkpoint] expected one of HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME and HOME in the environment to find the "
      "Hugging Face cache, found none; give a checkpoint folder");
}

fs::path resolve_checkpoint(const std::string& folder_or_name) {
  std::error_code ignored;
  if (fs::exists(folder_or_name, ignored)) return folder_or_name;
  const auto model = parse(folder_or_name);
  if (!model) return folder_or_name;

  const fs::path folder = hub_cache_folder() / model->folder();
  if (!fs::is_directory(folder, ignored)) {
    fail(ErrorCode::usage,
        "[checkpoint] {}: expected a model folder or a model of the Hugging Face cache, found neither that path nor "
        "{}; "
        "check the path, or fetch the model with `hf download {}`",
        folder_or_name, folder.string(), model->id());
  }
  const fs::path snapshot = folder / "snapshots" / find_commit(*model, folder);
  if (!fs::exists(snapshot / "config.json", ignored)) {
    const bool begun = fs::is_directory(snapshot, ignored);
    fail(ErrorCode::usage,
        "[checkpoint] {}: expected config.json in {}, found {}; the download is not complete, finish it with `hf "
        "download {}{}`",
        folder_or_name, snapshot.string(), begun ? "none" : "no such snapshot", model->id(),
        model->revision.empty() ? "" : " --revision " + model->revision);
  }
  return snapshot;
}

}  // namespace foresay
