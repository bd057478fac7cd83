// foresay bench: what it prints, not how fast it is.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "cli/program.h"
#include "fixtures/temp_dir.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

/// stdout of a run that must end well, one JSON object per line.
std::vector<Json> lines_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::vector<Json> lines;
  std::istringstream text(outcome.out);
  for (std::string line; std::getline(text, line);) {
    lines.push_back(Json::parse(line, nullptr, /*allow_exceptions=*/false));
    EXPECT_TRUE(lines.back().is_object()) << line;
    EXPECT_TRUE(lines.back().contains("bench") && lines.back().contains("shape") && lines.back().contains("lane"))
        << line;
  }
  return lines;
}

Json only_line(const Outcome& outcome) {
  const std::vector<Json> lines = lines_of(outcome);
  EXPECT_EQ(lines.size(), 1u) << outcome.out;
  return lines.empty() ? Json::object() : lines.front();
}

Arguments decode(const Arguments& more) {
  Arguments all = {"bench", "decode", kBundled};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Bench, DecodePrintsOneSpeedWithItsConditions) {
  const Json d = only_line(foresay(decode({"--depth", "2", "--tokens", "24"})));
  EXPECT_EQ(d["bench"], "decode");
  EXPECT_EQ(d["shape"], "tiny-qwen3_5");
  EXPECT_EQ(d["depth"], 2);
  EXPECT_EQ(d["acceptance"], "own");
  EXPECT_EQ(d["accepted"].size(), 2u);
  EXPECT_GE(d["tokens"], 24);
  for (const char* figure : {"tok_s", "tokens_per_pass", "ms_per_round", "ms_per_pass", "one_row_ms", "pass_ratio",
           "ms_per_draft_step", "draft_ratio", "sampling_share", "gbps"}) {
    EXPECT_GT(d[figure].get<double>(), 0) << figure;
  }
  EXPECT_LE(d["tokens_per_pass"], 3.0);
  EXPECT_LT(d["sampling_share"], 1.0);
}

TEST(Bench, DepthZeroDraftsNothing) {
  const Json d = only_line(foresay(decode({"--depth", "0", "--tokens", "8"})));
  EXPECT_EQ(d["tokens"], 8);
  EXPECT_EQ(d["tokens_per_pass"], 1.0);
  EXPECT_GT(d["tok_s"], 0.0);
  EXPECT_FALSE(d.contains("acceptance"));
  EXPECT_FALSE(d.contains("ms_per_draft_step"));
}

/// Within one survival of what was asked for, under every acceptance; and it says that it is not the model's own.
TEST(Bench, SyntheticDraftsSurviveAsAskedFor) {
  for (const Arguments& sampling : {Arguments{}, Arguments{"--temperature", "1", "--seed", "7"},
           Arguments{"--temperature", "1", "--top-k", "20", "--top-p", "0.95"},
           Arguments{"--temperature", "1", "--top-k", "1"}}) {
    SCOPED_TRACE(joined(sampling));
    Arguments arguments = decode({"--depth", "3", "--tokens", "96", "--synthetic-acceptance", "0.85,0.72,0.60"});
    arguments.insert(arguments.end(), sampling.begin(), sampling.end());
    const Json d = only_line(foresay(arguments));
    EXPECT_EQ(d["acceptance"], "synthetic");
    const double rounds = d["tokens"].get<double>() / d["tokens_per_pass"].get<double>();
    const std::vector<double> rates = {0.85, 0.72, 0.60};
    for (std::size_t i = 0; i < rates.size(); ++i) {
      EXPECT_NEAR(d["accepted"].at(i).get<double>(), rates[i], static_cast<double>(i + 1) / rounds + 1e-3);
    }
    EXPECT_NEAR(d["tokens_per_pass"].get<double>(), 3.17, 0.15);
  }
}

TEST(Bench, PassesAreComparedToOneRowAndToMemory) {
  const auto lines = lines_of(foresay(
      {"bench", "passes", kBundled, "--rows", "4,2", "--repeats", "1", "--read-buffer", "16", "--context", "70"}));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0]["bench"], "bandwidth");
  const double roof = lines[0]["gbps"];
  EXPECT_GT(roof, 0);
  EXPECT_EQ(lines[0]["best_gbps"], roof);  // of one turn
  const std::vector<int> rows = {1, 4, 2, 1};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& line = lines[i + 1];
    EXPECT_EQ(line["bench"], i < 3 ? "pass" : "draft_step");
    EXPECT_EQ(line["rows"], rows[i]);
    EXPECT_EQ(line["context"], 70);
    EXPECT_GT(line["ms"], 0.0);
    const double bytes = line["mbytes"];
    EXPECT_NEAR(bytes, line["gbps"].get<double>() * line["ms"].get<double>(), 0.0016 * bytes);  // of four digits each
    EXPECT_NEAR(line["share_of_bandwidth"].get<double>(), line["gbps"].get<double>() / roof, 0.01);
  }
  EXPECT_EQ(lines[1]["ratio"], 1.0);
}

TEST(Bench, PrefillAndLoadPrintTheirFigures) {
  const Json prefill = only_line(foresay(
      {"bench", "prefill", kBundled, "--tokens", "40", "--repeats", "1", "--prefill-chunk", "16", "--depth", "1"}));
  EXPECT_EQ(prefill["rows"], 40);
  EXPECT_EQ(prefill["chunk"], 16);
  EXPECT_NEAR(prefill["tok_s"].get<double>() * prefill["ms"].get<double>(), 40e3, 40);

  const auto load = lines_of(foresay({"bench", "load", kBundled, "--repeats", "1", "--isa", "reference"}));
  ASSERT_EQ(load.size(), 2u);
  EXPECT_EQ(load[0]["bench"], "load");
  EXPECT_GT(load[0]["ms"], 0.0);
  expect_parts(load[0]["lane"], {"reference"});
  EXPECT_EQ(load[1]["bench"], "memory");
  EXPECT_GT(load[1]["caches_mb"], 0.0);
}

class BenchShape : public ::testing::Test {
 protected:
  Outcome prefill(const Arguments& more = {}) {
    Command command;
    command.environment["XDG_CACHE_HOME"] = dir_.path().string();
    Arguments all = {"bench", "prefill", "--shape", "qwen3_5-tiny", "--tokens", "4", "--repeats", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return foresay(all, command);
  }
  [[nodiscard]] fs::path folder(const std::string& name) const { return dir_.path() / "foresay" / "shapes" / name; }

  TempDir dir_;
};

TEST_F(BenchShape, IsMadeOnceAndIsAWholeCheckpoint) {
  const Outcome first = prefill();
  EXPECT_EQ(only_line(first)["shape"], "qwen3_5-tiny");
  expect_parts(first.err, {"making random weights"});
  const Outcome second = prefill();
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(second.err, "");

  const std::string made = folder("qwen3_5-tiny-4bit").string();
  const Json inspected = json_of(foresay({"inspect", made, "--json"}));
  EXPECT_EQ(inspected["verdict"], "mtp") << inspected;
  const std::string text = "def read(path):\n\treturn \"Grüße\" + 日本";
  const Json answer = generate_json(made, {"--prompt", text, "--max-tokens", "4", "--chat"});
  EXPECT_EQ(answer["stats"]["mtp"]["effective"], "on");
}

TEST_F(BenchShape, HalfOfOneIsMadeAgain) {
  const fs::path whole = folder("qwen3_5-tiny-8bit-head16"), part = folder("qwen3_5-tiny-8bit-head16.part");
  for (const fs::path& each : {whole, part}) {
    fs::create_directories(each);
    std::ofstream(each / "model.safetensors") << "half";
    std::ofstream(each / "left-over") << "of another version";
  }
  const Json line = only_line(prefill({"--bits", "8", "--head-bits", "16"}));
  EXPECT_EQ(line["bits"], 8);
  EXPECT_EQ(line["head_bits"], 16);
  EXPECT_FALSE(fs::exists(whole / "left-over"));
  EXPECT_FALSE(fs::exists(part));
}

TEST_F(BenchShape, AFolderThatCannotBeWrittenIsRefused) {
  std::ofstream(dir_.path() / "foresay") << "a file";
  const Outcome outcome = prefill();
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  expect_parts(outcome.err, {"XDG_CACHE_HOME"});
}

TEST(Bench, BadOptionsAreRefused) {
  expect_refused({"bench", "--threads", "1"}, 2, {"see `foresay bench --help`"});
  expect_refused({"bench", "nothing"}, 2, {});
  expect_refused({"bench", "prefill", "--shape", "qwen9"}, 2, {"one of", "qwen3_5-0.8b", "foresay bench prefill"});
  expect_refused({"bench", "prefill", kBundled, "--shape", "qwen3_5-tiny"}, 2, {"--shape"});
  expect_refused({"bench", "prefill", kBundled, "--bits", "4"}, 2, {"--shape"});
  expect_refused({"bench", "prefill", "--shape", "qwen3_5-tiny", "--bits", "5"}, 2, {"one of 4, 8, 16"});
  expect_refused({"bench", "passes", kBundled, "--rows", "0"}, 2, {"--rows"});
  expect_refused({"bench", "passes", kBundled, "--context", "5000"}, 2, {"--context"});
  for (const auto& [options, parts] :
      std::vector<std::pair<Arguments, std::vector<std::string>>>{{{"--depth", "9"}, {"--depth"}},
          {{"--isa", "sse9"}, {"one of reference"}}, {{"--mtp", "off"}, {"--depth", "without a head"}},
          {{"--synthetic-acceptance", "0.85,0.72"}, {"each of the 3 positions"}},
          {{"--synthetic-acceptance", "0.5,0.6,0.1"}, {"none above the one before it"}},
          {{"--synthetic-acceptance", "1.5,1,1"}, {"from 1 to 0"}},
          {{"--synthetic-acceptance", "nan,0,0"}, {"from 1 to 0"}},
          {{"--synthetic-acceptance", "0.5,,0.1"}, {"from 1 to 0"}}, {{"--tokens", "5000"}, {"context of 4096"}},
          {{"--top-p", "0"}, {"--top-p"}}}) {
    expect_refused(decode(options), 2, parts);
  }
}

}  // namespace
}  // namespace foresay
