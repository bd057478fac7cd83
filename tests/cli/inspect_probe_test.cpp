// foresay inspect --probe: the wirings that are tried, what is kept, and the warning that later runs give.
#include <fstream>

#include "cli/program.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

class InspectProbe : public ::testing::Test {
 protected:
  Outcome run(Arguments arguments) {
    Command command;
    command.environment["XDG_CACHE_HOME"] = cache_.string();
    return foresay(arguments, command);
  }
  Json probe(Arguments more = {}, const std::string& model = kBundled) {
    more.insert(more.begin(), {"inspect", model, "--probe", "--json"});
    return json_of(run(more));
  }

  TempDir dir_;
  fs::path cache_ = dir_.path() / "cache";
};

TEST_F(InspectProbe, TheTrainedWiringIsTheBestAndEveryOtherSingleChangeIsTried) {
  const Json d = probe();
  const Json& wirings = d["probe"]["wirings"];
  ASSERT_EQ(wirings.size(), 5u);
  const std::vector<std::string> names = {"as it is", "base_hidden pre_norm", "recycled_hidden pre_norm",
      "concat_order hidden_embedding", "head_norms absolute"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(wirings[i]["wiring"], names[i]);
    EXPECT_EQ(wirings[i]["agreement"].size(), 3u);
    EXPECT_LE(wirings[i]["tokens_per_round"], wirings[0]["tokens_per_round"]);
  }
  EXPECT_GT(wirings[0]["agreement"][0], 0.5);
  EXPECT_LT(wirings[3]["agreement"][0], 0.3);  // as acceptance.json of the golden says
  EXPECT_LT(wirings[4]["agreement"][0], 0.05);
  EXPECT_EQ(d["probe"]["best"], "as it is");
  EXPECT_GE(d["probe"]["margin"], 0);
  EXPECT_EQ(d["probe"]["left_out"], Json::array());
  EXPECT_EQ(d["warnings"], Json::array());
  EXPECT_EQ(d["probe"]["from_cache"], false);

  Json kept = probe();
  EXPECT_EQ(kept["probe"]["from_cache"], true);
  EXPECT_EQ(kept["probe"]["wirings"], wirings);
  std::ofstream(kept["probe"]["file"].get<std::string>()) << "{";  // a damaged entry is as good as none
  EXPECT_EQ(probe()["probe"]["from_cache"], false);
  EXPECT_EQ(probe({"--measure-again"})["probe"]["from_cache"], false);
}

TEST_F(InspectProbe, AWrongWiringIsNamedAndLaterRunsWarnOfIt) {
  const Arguments wrong = {"--concat-order", "hidden_embedding", "--head-norms", "absolute"};
  const Json d = probe(wrong);
  EXPECT_LT(d["probe"]["wirings"][0]["agreement"][0], 0.05);
  ASSERT_EQ(d["warnings"].size(), 1u);
  expect_parts(d["warnings"][0], {"first draft", "% of rounds", "wired wrongly"});

  Arguments generate = {"generate", kBundled, "--prompt", kPrompt, "--max-tokens", "2"};
  EXPECT_EQ(run(generate).err.find("wired wrongly"), std::string::npos) << "it is kept for the wiring that was probed";
  generate.insert(generate.end(), wrong.begin(), wrong.end());
  expect_parts(run(generate).err, {"warning", "wired wrongly"});

  const Json swapped = probe({"--concat-order", "hidden_embedding"});
  EXPECT_EQ(swapped["probe"]["best"], "concat_order embedding_hidden");
  ASSERT_EQ(swapped["warnings"].size(), 1u);
  expect_parts(swapped["warnings"][0], {"concat_order embedding_hidden", "tokens a round"});
}

TEST_F(InspectProbe, WorksWithoutATokenizerAndNotWithoutAHead) {
  const auto folder = write_tiny(dir_.path() / "model", tiny()).string();
  EXPECT_EQ(probe({}, folder)["probe"]["wirings"].size(), 5u);
  Outcome text = run({"inspect", folder, "--probe"});
  expect_parts(text.out, {"as it is", "best wiring", "drafts survive at"});
  expect_refused({"inspect", kBundled, "--probe", "--mtp", "off"}, 2, {"probe", "head"});
}

}  // namespace
}  // namespace foresay
