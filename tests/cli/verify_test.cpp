// foresay verify: what it checks, prompts of one's own, and that it can fail.
#include <limits>
#include <regex>

#include "cli/program.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

Json verify_json(const std::string& model, Arguments more, int status = 0) {
  more.insert(more.begin(), {"verify", model, "--json"});
  return json_of(foresay(more), status);
}

std::vector<std::string> names(const Json& document) {
  std::vector<std::string> all;
  for (const Json& check : document["checks"]) all.push_back(check["name"]);
  return all;
}

TEST(Verify, TheBundledModelIsLossless) {
  const Json d = verify_json(kBundled, {"--quick"});
  EXPECT_EQ(d["lossless"], true);
  EXPECT_EQ(d["model"], kBundled);
  expect_parts(d["lane"], {"cpu", "1 thread"});
  EXPECT_EQ(names(d), (std::vector<std::string>{"greedy", "coupled", "together", "ratio"}));
  for (const Json& check : d["checks"]) {
    EXPECT_EQ(check["passed"], true) << check;
    EXPECT_GT(check["tokens"], 0) << check;
    EXPECT_GT(check["accepted"], 0) << check;  // without both kinds of draft a check would show little
    EXPECT_GT(check["rejected"], 0) << check;
  }
  expect_parts(d["checks"][0]["detail"], {"depths 1, 3, 8"});
}

TEST(Verify, SaysALinePerCheck) {
  TempDir dir;
  const auto folder = write_tiny(dir.path() / "model", tiny_hybrid()).string();
  const Outcome outcome = foresay({"verify", folder, "--quick", "--depth", "2,1", "--max-tokens", "9"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::string line = " +passed +[0-9]+ prompts, [0-9]+ tokens: .*\n";
  EXPECT_TRUE(std::regex_match(outcome.out,
      std::regex("greedy" + line + "coupled" + line + "together" + line + "ratio" + line + "lossless: yes\n")))
      << outcome.out;
  expect_parts(outcome.out, {"depths 1, 2;"});
}

TEST(Verify, PromptsComeFromAFileOfLinesOrAList) {
  TempDir dir;
  const std::string file = (dir.path() / "prompts").string();
  const auto prompts_of = [&](const std::string& content) {
    write_text(file, content);
    return verify_json(
        kBundled, {"--quick", "--max-tokens", "4", "--depth", "1", "--prompts", file})["checks"][0]["prompts"];
  };
  EXPECT_EQ(prompts_of("def f():\n\nclass A:\r\n  [1]\nlast"), 4);
  EXPECT_EQ(prompts_of(R"( ["one", {"prompt": "two"}, {"ids": [259, 497]}])"), 3);
}

TEST(Verify, PromptsThatCannotBeReadAreRefusedBeforeTheModelIsOpened) {
  TempDir dir;
  const std::string file = (dir.path() / "prompts").string();
  const auto refused = [&](const std::string& content, const std::vector<std::string>& parts) {
    write_text(file, content);
    expect_refused({"verify", "/nonexistent", "--prompts", file}, 2, parts);
  };
  refused("", {"--prompts", file, "none"});
  refused("\n\n", {"--prompts", "none"});
  refused("[]", {"--prompts", "none"});
  refused("[1", {"--prompts", "JSON"});
  refused("a\n\nb\xC3(", {"line 3", "UTF-8"});
  for (const std::string item : {"1", "{}", "\"\"", R"({"ids": []})", R"({"ids": [-1]})", R"({"ids": [1.5]})",
           R"({"ids": [99999999999]})", R"({"prompt": 1})", R"({"prompt": "x", "ids": [1]})"})
    refused("[\"good\", " + item + "]", {"--prompts", "item 1"});
  expect_refused(
      {"verify", "/nonexistent", "--prompts", (dir.path() / "none").string()}, 2, {"--prompts", "No such file"});
  expect_refused({"verify", "/nonexistent", "--prompts", dir.path().string()}, 2, {"--prompts", "folder"});
  for (const std::string depth : {"0", "9", "x", "", "1,9"})
    expect_refused({"verify", "/nonexistent", "--depth", depth}, 2, {"--depth"});
  for (const std::string most : {"1", "-1", "nan"})
    expect_refused({"verify", "/nonexistent", "--max-tokens", most}, 2, {"--max-tokens"});

  write_text(file, R"([{"ids": [4096]}])");
  expect_refused({"verify", kBundled, "--prompts", file}, 2, {"4096", "vocabulary"});
  const auto folder = write_tiny(dir.path() / "model", tiny()).string();
  write_text(file, "text");
  expect_refused({"verify", folder, "--prompts", file}, 3, {"tokenizer.json"});
}

TEST(Verify, WithoutAHeadItChecksWhatThereIs) {
  TempDir dir;
  auto options = tiny_hybrid();
  options.head = false;
  const auto folder = write_tiny(dir.path() / "model", options).string();
  const Outcome outcome = foresay({"verify", folder, "--quick", "--json"});
  const Json d = json_of(outcome);
  EXPECT_EQ(d["lossless"], true);
  EXPECT_EQ(names(d), (std::vector<std::string>{"greedy", "together"}));
  expect_parts(outcome.err, {"nothing can be drafted"});
  expect_refused({"verify", folder, "--quick", "--mtp", "required"}, 5, {"--mtp required"});
}

TEST(Verify, AHeadThatNeverDraftsIsNotCalledLossless) {
  TempDir dir;
  const auto folder = write_tiny(dir.path() / "model", tiny_hybrid());
  edit_tensors(folder / "model.safetensors",
      [](TensorMap& tensors) { tensors.at("mtp.fc.weight").set(0, std::numeric_limits<float>::quiet_NaN()); });
  expect_parts(foresay({"verify", folder.string(), "--quick"}).err, {"foresay: ", "not finite", "mtp.fc.weight"});
  EXPECT_EQ(foresay({"verify", folder.string(), "--quick"}).status, 3);
  EXPECT_EQ(foresay({"verify", folder.string(), "--quick", "--mtp", "required"}).status, 5);
  EXPECT_EQ(verify_json(folder.string(), {"--quick", "--mtp", "auto"})["lossless"], true);

  edit_tensors(folder / "model.safetensors",
      [](TensorMap& tensors) { tensors.at("lm_head.weight").set(0, std::numeric_limits<float>::quiet_NaN()); });
  expect_refused({"verify", folder.string(), "--quick", "--mtp", "off"}, 3, {"nan", "lm_head.weight"});
}

TEST(Verify, CtrlCEndsIt) {
  Command command;
  command.signal = SIGINT;
  command.signal_after = 0;  // when the load has said something
  const Outcome outcome = foresay({"verify", kBundled}, command);
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_EQ(outcome.signal, 0);
}

#if defined(FORESAY_FLAKY_MATH)
TEST(Verify, AMachineThatCountsDifferentlyEachTimeFails) {
  Command command;
  command.environment = {{"LD_PRELOAD", FORESAY_FLAKY_MATH}, {"ASAN_OPTIONS", "verify_asan_link_order=0"}};
  const Outcome outcome = foresay({"verify", kBundled, "--quick", "--json"}, command);
  const Json d = json_of(outcome, 7);
  EXPECT_EQ(d["lossless"], false);
  EXPECT_EQ(d["checks"][0]["passed"], false);
  expect_parts(d["checks"][0]["detail"], {"prompt ", ", depth ", ", generated token ", "without drafts", "here; "});
  expect_parts(outcome.err, {"foresay: [verify]"});
  const Outcome text = foresay({"verify", kBundled, "--quick"}, command);
  EXPECT_EQ(text.status, 7);
  expect_parts(text.out, {"greedy    FAILED", "lossless: NO"});
}
#endif

}  // namespace
}  // namespace foresay
