// foresay inspect --cost: what is printed, what is kept between runs, and what is refused. No test looks at how long
// anything took.
#include <fstream>

#include "cli/program.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

class InspectCost : public ::testing::Test {
 protected:
  Outcome inspect(Arguments more, const std::string& model = kBundled) {
    more.insert(more.begin(), {"inspect", model, "--cost"});
    Command command;
    command.environment["XDG_CACHE_HOME"] = cache_.string();
    return foresay(more, command);
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> files;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(cache_ / "foresay" / "costs", ignored))
      files.push_back(entry.path());
    return files;
  }

  TempDir dir_;
  fs::path cache_ = dir_.path() / "cache";
};

TEST_F(InspectCost, IsMeasuredOnceAndKept) {
  const Json first = json_of(inspect({"--json"}))["cost"];
  EXPECT_EQ(first["from_cache"], false);
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_EQ(first["file"], entries()[0].string());
  const Json& passes = first["passes"];
  ASSERT_GE(passes.size(), 2u);
  EXPECT_EQ(passes[0]["rows"], 1);
  EXPECT_EQ(passes[0]["ratio"], 1);
  EXPECT_GT(passes[0]["ms"], 0);
  EXPECT_GT(first["draft"]["ms"], 0);
  ASSERT_EQ(first["depths"].size(), 8u);
  for (const Json& depth : first["depths"]) EXPECT_TRUE(depth.contains("break_even"));

  Json second = json_of(inspect({"--json"}))["cost"];
  EXPECT_EQ(second["from_cache"], true);
  second["from_cache"] = false;
  EXPECT_EQ(second, first);

  EXPECT_EQ(json_of(inspect({"--json", "--measure-again"}))["cost"]["from_cache"], false);
  EXPECT_EQ(entries().size(), 1u);
  EXPECT_EQ(json_of(foresay({"inspect", kBundled, "--json"})).contains("cost"), false);
}

TEST_F(InspectCost, SpeedIsThatOfTheDefinition) {
  const Json cost = json_of(inspect({"--json", "--acceptance", "0.85,0.72,0.60", "--context", "0"}))["cost"];
  ASSERT_EQ(cost["depths"].size(), 3u);
  EXPECT_EQ(cost["context"], 0);
  const Json& three = cost["depths"][2];
  const double speed = 1000 * 3.17 / three["round_ms"].get<double>();
  EXPECT_NEAR(three["tokens_per_second"].get<double>(), speed, 1e-6 * speed);
  EXPECT_NEAR(three["speedup"].get<double>(), speed * cost["passes"][0]["ms"].get<double>() / 1000, 1e-9 * speed);
  const Outcome text = inspect({"--acceptance", "0.5"});
  expect_parts(text.out, {"costs", "512 positions", "pass, 1 row ", "pass, 4 rows", "draft step", "depth 1",
                             "times plain", "from " + cost["file"].get<std::string>()});
  EXPECT_EQ(text.out.find("depth 2"), std::string::npos);
}

TEST_F(InspectCost, WhatItDependsOnHasEntriesOfItsOwn) {
  const fs::path model = copy_bundled(dir_.path() / "model");
  const auto from_cache = [&](const Arguments& more) {
    Arguments arguments = {"--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(inspect(arguments, model.string()))["cost"]["from_cache"].get<bool>();
  };
  EXPECT_FALSE(from_cache({}));
  EXPECT_TRUE(from_cache({}));
  EXPECT_FALSE(from_cache({"--threads", "2"}));
  EXPECT_FALSE(from_cache({"--mtp", "off"}));
  EXPECT_EQ(json_of(inspect({"--json", "--mtp", "off"}, model.string()))["cost"]["draft"], nullptr);
  EXPECT_EQ(entries().size(), 3u);
  std::ofstream(model / "config.json", std::ios::app) << "\n";
  EXPECT_FALSE(from_cache({}));
  EXPECT_EQ(entries().size(), 4u);
}

TEST_F(InspectCost, ACacheThatFailsCostsOneMeasurement) {
  (void)inspect({});
  ASSERT_EQ(entries().size(), 1u);
  write_text(entries()[0], "{\"format\": 1, ");
  EXPECT_EQ(json_of(inspect({"--json"}))["cost"]["from_cache"], false);
  EXPECT_EQ(json_of(inspect({"--json"}))["cost"]["from_cache"], true);

  fs::remove_all(cache_);
  write_text(cache_, "no folder");
  const Json d = json_of(inspect({"--json"}));
  EXPECT_EQ(d["cost"]["from_cache"], false);
  ASSERT_EQ(d["warnings"].size(), 1u);
  expect_parts(d["warnings"][0].get<std::string>(), {"[cost]", "measured again"});
}

TEST_F(InspectCost, RefusesBadOptions) {
  const auto refused = [](const Arguments& more, const std::vector<std::string>& parts) {
    Arguments arguments = {"inspect", kBundled};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refused(arguments, 2, parts);
  };
  refused({"--acceptance", "0.5"}, {"--acceptance", "--cost"});
  refused({"--measure-again"}, {"--measure-again", "--cost"});
  refused({"--cost", "--context", "-1"}, {"--context", "\"-1\""});
  for (const auto& [value, found] : {std::pair("0.5,x", "\"x\""), {"1.5", "\"1.5\""}, {"-0.1", "\"-0.1\""},
           {"0.5,", "\"\""}, {"0.5,0.6", "\"0.6\""}, {"nan", "\"nan\""}}) {
    refused({"--cost", "--acceptance", value}, {"--acceptance", "from 0 to 1", found});
  }
  refused({"--cost", "--acceptance", "1,1,1,1,1,1,1,1,1"}, {"--acceptance", "at most 8", "found 9"});
  refused({"--cost", "--acceptance", ""}, {"--acceptance"});
}

}  // namespace
}  // namespace foresay
