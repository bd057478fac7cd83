// Names of the Hugging Face cache, against caches that a test lays out as huggingface_hub does.
#include "checkpoint/hub_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>  // setenv

#include <fstream>
#include <map>
#include <optional>

#include "checkpoint/expect_error.h"
#include "fixtures/temp_dir.h"

namespace foresay {
namespace {

namespace fs = std::filesystem;

const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";
const std::string kOther = "0123ffff89abcdef0123456789abcdef01234567";

/// A cache of its own, and an environment that is put back.
class HubCache : public ::testing::Test {
 protected:
  HubCache() {
    for (const char* name : {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"}) {
      const char* const value = std::getenv(name);
      saved_[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
      ::unsetenv(name);
    }
    set("HF_HUB_CACHE", cache_.string());
  }
  ~HubCache() override {
    for (const auto& [name, value] : saved_) value ? set(name, *value) : (void)::unsetenv(name.c_str());
  }

  static void set(const std::string& name, const std::string& value) { ::setenv(name.c_str(), value.c_str(), 1); }
  static void write(const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  /// A snapshot whose config.json is a link to a blob, as the real ones are.
  static fs::path add_snapshot(const fs::path& cache, const std::string& commit = kCommit) {
    const fs::path model = cache / "models--org--name", snapshot = model / "snapshots" / commit;
    write(model / "blobs" / "aa", "{}");
    fs::create_directories(snapshot);
    fs::create_symlink("../../blobs/aa", snapshot / "config.json");
    return snapshot;
  }
  void add_ref(const std::string& revision, const std::string& commit = kCommit) const {
    write(model_ / "refs" / revision, commit);
  }

  TempDir dir_;
  fs::path cache_ = dir_.path() / "hub", model_ = cache_ / "models--org--name";
  std::map<std::string, std::optional<std::string>> saved_;
};

TEST_F(HubCache, ANameIsTheSnapshotOfMain) {
  const fs::path snapshot = add_snapshot(cache_);
  add_ref("main", kCommit + "\n");
  EXPECT_EQ(resolve_checkpoint("org/name"), snapshot);
  EXPECT_EQ(resolve_checkpoint("org/name@main"), snapshot);
}

TEST_F(HubCache, ARevisionIsABranchATagAPullRequestOrTheBeginningOfACommit) {
  const fs::path first = add_snapshot(cache_), second = cache_ / "models--org--name" / "snapshots" / kOther;
  write(second / "config.json", "{}");
  add_ref("main");
  add_ref("v1.0", kOther);
  add_ref("refs/pr/7", kOther);
  EXPECT_EQ(resolve_checkpoint("org/name@v1.0"), second);
  EXPECT_EQ(resolve_checkpoint("org/name@refs/pr/7"), second);
  EXPECT_EQ(resolve_checkpoint("org/name@" + kOther), second);
  EXPECT_EQ(resolve_checkpoint("org/name@01234"), first);
  expect_error(ErrorCode::usage, {"0123", kCommit, kOther, "more"}, [] { (void)resolve_checkpoint("org/name@0123"); });
  expect_error(ErrorCode::usage, {"revision 012 "}, [] { (void)resolve_checkpoint("org/name@012"); });
}

TEST_F(HubCache, APathThatExistsWins) {
  add_snapshot(cache_);
  add_ref("main");
  const auto before = fs::current_path();
  fs::create_directories(dir_.path() / "org" / "name");
  fs::current_path(dir_.path());
  EXPECT_EQ(resolve_checkpoint("org/name"), fs::path("org/name"));
  fs::current_path(before);
}

TEST_F(HubCache, WhatIsNoNameIsGivenBack) {
  const std::vector<std::string> texts = {"", "name", "/nowhere/at/all", "a/b/c", "./a", "../a", "org/", "org/na me",
      "org/name@", "-org/name", std::string(5000, 'x')};
  for (const std::string& text : texts) {
    EXPECT_EQ(resolve_checkpoint(text), fs::path(text));
  }
  const std::string much = "a/" + std::string(100000, 'x');
  EXPECT_EQ(resolve_checkpoint(much), fs::path(much));
}

TEST_F(HubCache, TheCacheIsWhereTheLibraryPutsIt) {
  const fs::path root = dir_.path();
  set("HOME", (root / "home").string());
  set("XDG_CACHE_HOME", (root / "xdg").string());
  set("HF_HOME", (root / "hf").string());
  EXPECT_EQ(hub_cache_folder(), cache_);
  set("HF_HUB_CACHE", "~/models");
  EXPECT_EQ(hub_cache_folder(), root / "home" / "models");
  set("HF_HUB_CACHE", "");
  EXPECT_EQ(hub_cache_folder(), root / "hf" / "hub");
  ::unsetenv("HF_HOME");
  EXPECT_EQ(hub_cache_folder(), root / "xdg" / "huggingface" / "hub");
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(hub_cache_folder(), root / "home" / ".cache" / "huggingface" / "hub");
  ::unsetenv("HOME");
  expect_error(ErrorCode::usage, {"HF_HUB_CACHE", "HOME"}, [] { (void)hub_cache_folder(); });
}

TEST_F(HubCache, WhatIsMissingIsSaidWithWhereItWasLookedForAndWhatToDo) {
  const auto refused = [](const std::string& name, const std::vector<std::string>& parts) {
    expect_error(ErrorCode::usage, parts, [&] { (void)resolve_checkpoint(name); });
  };
  refused("org/name", {"org/name", model_.string(), "hf download org/name"});  // not even the cache is there
  fs::create_directories(model_ / "snapshots");
  refused("org/name", {"revision main", "no snapshot"});
  add_snapshot(cache_);
  refused("org/name", {"revision main", "commits " + kCommit, "org/name@REVISION"});
  add_ref("main");
  refused("org/name@dev", {"revision dev", "revisions main", "--revision dev"});
  refused("org/name@../../x", {"revision ../../x"});
  add_ref("gone", kOther);
  refused("org/name@gone", {kOther, "no such snapshot", "--revision gone"});
  fs::remove(model_ / "blobs" / "aa");  // the link leads nowhere: an interrupted download
  refused("org/name", {"config.json", "snapshots", kCommit, "not complete", "hf download org/name"});
}

}  // namespace
}  // namespace foresay
