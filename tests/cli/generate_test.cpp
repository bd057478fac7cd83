// foresay generate: results, their JSON, and what they must not depend on.
#include <algorithm>
#include <regex>

#include "cli/program.h"
#include "text/tokenizer.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

const Arguments kIds = {"--prompt-ids", "259,497,259,304,12,40,41,7"};

Arguments with(Arguments first, const Arguments& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

TEST(Generate, JsonHoldsIdsTextAndStatistics) {
  const Json d = generate_json(kBundled, {"--prompt", kPrompt, "--max-tokens", "24", "--ignore-eos"});
  EXPECT_EQ(keys(d), (std::vector<std::string>{"model", "prompt_ids", "ids", "text", "finish_reason", "stats"}));
  EXPECT_EQ(d["model"], kBundled);
  const auto tokenizer = Tokenizer::load(kBundled);
  EXPECT_EQ(d["prompt_ids"].get<std::vector<TokenId>>(), tokenizer.encode(kPrompt));
  EXPECT_EQ(d["ids"].size(), 24u);
  EXPECT_EQ(d["finish_reason"], "length");
  std::string text;
  for (const TokenId id : d["ids"]) text += tokenizer.token_bytes(id, /*skip_special=*/true);
  EXPECT_EQ(d["text"], text);

  const Json& stats = d["stats"];
  EXPECT_EQ(stats["depth"], 3);
  ASSERT_EQ(stats["drafted"].size(), 3u);
  ASSERT_EQ(stats["accepted"].size(), 3u);
  EXPECT_GT(stats["drafted"][0], 0);  // B49: the bundled model is a vision wrapper
  int emitted = 1;                    // the prompt's own pass
  for (int i = 0; i < 3; ++i) {
    EXPECT_LE(stats["accepted"][i], stats["drafted"][i]);
    EXPECT_LE(stats["drafted"][i], stats["drafted"][std::max(0, i - 1)]);
    emitted += stats["accepted"][i].get<int>();
  }
  EXPECT_EQ(emitted + stats["passes"].get<int>(), 24);
  EXPECT_GT(stats["prompt_tok_s"], 0.0);
  EXPECT_GT(stats["decode_tok_s"], 0.0);
  EXPECT_EQ(stats["mtp"]["requested"], "on");
  EXPECT_EQ(stats["mtp"]["effective"], "on");
  expect_parts(stats["mtp"]["reason"], {"model.safetensors"});
}

TEST(Generate, IdsNeedNoTokenizerAndGiveNoText) {
  TempDir dir;
  const auto folder = write_tiny(dir.path() / "model", tiny_hybrid()).string();
  const Json d = generate_json(folder, {"--prompt-ids", "1,2,3", "--max-tokens", "5"});
  EXPECT_EQ(d["prompt_ids"], Json({1, 2, 3}));
  EXPECT_EQ(d["ids"].size(), 5u);
  EXPECT_TRUE(d["text"].is_null());
}

TEST(Generate, PromptAndIdsComeFromStdinAsWell) {
  const Json text = generate_json(kBundled, {"--prompt", kPrompt, "--max-tokens", "6"});
  Command command;
  command.input = kPrompt;
  const Json read = json_of(foresay({"generate", kBundled, "--json", "--prompt", "-", "--max-tokens", "6"}, command));
  EXPECT_EQ(read["prompt_ids"], text["prompt_ids"]);
  EXPECT_EQ(read["ids"], text["ids"]);

  command.input.clear();
  for (const auto& id : text["prompt_ids"]) command.input += id.dump() + "\n";
  const Json ids =
      json_of(foresay({"generate", kBundled, "--json", "--prompt-ids", "-", "--max-tokens", "6"}, command));
  EXPECT_EQ(ids["ids"], text["ids"]);
}

TEST(Generate, PromptsThatLookLikeOptionsOrListsAreText) {
  const auto tokenizer = Tokenizer::load(kBundled);
  for (const std::string prompt : {"--depth", "[1,2]", "\"quoted\"", "%d {}", "-x"}) {
    const Json d = generate_json(kBundled, {"--prompt", prompt, "--max-tokens", "1", "--stop", "[a,b]"});
    EXPECT_EQ(d["prompt_ids"].get<std::vector<TokenId>>(), tokenizer.encode(prompt)) << prompt;
  }
}

TEST(Generate, ChatGoesThroughTheTemplate) {
  const auto tokenizer = Tokenizer::load(kBundled);
  const auto prompt_text = [&](const Arguments& arguments) {
    const Json d = generate_json(kBundled, with({"--max-tokens", "2"}, arguments));
    std::string text;
    for (const TokenId id : d["prompt_ids"]) text += tokenizer.token_bytes(id, /*skip_special=*/false);
    return text;
  };
  expect_parts(prompt_text({"--chat", "--prompt", "Hello"}), {"<|im_start|>user\nHello<|im_end|>", "assistant"});
  expect_parts(prompt_text({"--system", "Be brief.", "--prompt", "Hello"}),  // --system implies --chat
      {"<|im_start|>system\nBe brief.<|im_end|>", "<|im_start|>user\nHello<|im_end|>"});
}

TEST(Generate, GreedyIdsAreTheSameAtEveryDepthThreadCountAndChunk) {
  const Arguments base = with(kIds, {"--max-tokens", "32", "--ignore-eos"});
  const Json plain = generate_json(kBundled, with(base, {"--depth", "0"}))["ids"];
  ASSERT_EQ(plain.size(), 32u);
  for (const Arguments& more : {Arguments{"--depth", "1"}, {"--depth", "4"}, {"--depth", "8"}, {"--threads", "0"},
           {"--threads", "2"}, {"--prefill-chunk", "1"}, {"--prefill-chunk", "7"}, {"--prefill-chunk", "0"},
           {"--mtp", "off"}, {"--mtp", "required"}, {"--cpu-activations", "float"}}) {
    EXPECT_EQ(generate_json(kBundled, with(base, more))["ids"], plain) << joined(more);
  }
}

TEST(Generate, ASeedGivesTheSameIdsAtEveryDepth) {
  const Arguments base = with(kIds, {"--max-tokens", "24", "--ignore-eos", "--temperature", "0.9", "--top-k", "50",
                                        "--top-p", "0.95", "--min-p", "0.01"});
  const Json first = generate_json(kBundled, with(base, {"--seed", "7", "--depth", "0"}));
  EXPECT_EQ(first["seed"], 7);
  for (const std::string depth : {"0", "1", "2", "3", "4"}) {
    EXPECT_EQ(generate_json(kBundled, with(base, {"--seed", "7", "--depth", depth}))["ids"], first["ids"]) << depth;
  }
  EXPECT_NE(generate_json(kBundled, with(base, {"--seed", "8"}))["ids"], first["ids"]);

  // Without a seed one is drawn and told, and repeats the answer; the largest seed is one like any other.
  const Json drawn = generate_json(kBundled, with(base, {"--accept", "coupled"}));
  const auto seed = std::to_string(drawn["seed"].get<std::uint64_t>());
  EXPECT_EQ(generate_json(kBundled, with(base, {"--seed", seed}))["ids"], drawn["ids"]);
  EXPECT_EQ(generate_json(kBundled, with(base, {"--seed", "18446744073709551615"}))["seed"], 18446744073709551615u);
}

TEST(Generate, RatioAcceptanceShowsNoSeedAndRepeatsWithOne) {
  const Arguments base =
      with(kIds, {"--max-tokens", "16", "--ignore-eos", "--temperature", "1", "--accept", "ratio", "--seed", "3"});
  const Json d = generate_json(kBundled, base);
  EXPECT_FALSE(d.contains("seed"));
  EXPECT_EQ(generate_json(kBundled, base)["ids"], d["ids"]);
}

TEST(Generate, DepthZeroSaysWhyNothingIsDrafted) {
  const Json stats = generate_json(kBundled, with(kIds, {"--max-tokens", "4", "--depth", "0"}))["stats"];
  EXPECT_EQ(stats["depth"], 0);
  EXPECT_EQ(stats["drafted"], Json::array());
  EXPECT_EQ(stats["mtp"]["effective"], "off");
  expect_parts(stats["mtp"]["reason"], {"depth 0"});
}

TEST(Generate, AnAnswerTooShortToDraftSaysSo) {
  for (const std::string most : {"1", "2"}) {
    const Json stats = generate_json(kBundled, with(kIds, {"--max-tokens", most, "--ignore-eos"}))["stats"];
    EXPECT_EQ(stats["drafted"], Json({0, 0, 0}));
    EXPECT_EQ(stats["mtp"]["effective"], "off");
    expect_parts(stats["mtp"]["reason"], {"nothing was drafted", "too short"});
  }
  const Outcome text = foresay(with({"generate", kBundled, "--max-tokens", "2"}, kIds));
  EXPECT_EQ(text.err.find("MTP"), std::string::npos) << text.err;
  const Json three = generate_json(kBundled, with(kIds, {"--max-tokens", "3", "--ignore-eos"}))["stats"];
  EXPECT_EQ(three["mtp"]["effective"], "on");
}

TEST(Generate, CompareInJsonSaysIdentical) {
  const Json greedy = generate_json(kBundled, with(kIds, {"--max-tokens", "24", "--compare"}));
  EXPECT_EQ(greedy["identical"], true);
  EXPECT_EQ(greedy["ar_stats"]["depth"], 0);
  EXPECT_EQ(greedy["stats"]["depth"], 3);
  const Json coupled = generate_json(
      kBundled, with(kIds, {"--max-tokens", "24", "--compare", "--temperature", "1.2", "--accept", "coupled"}));
  EXPECT_EQ(coupled["identical"], true);
  EXPECT_TRUE(coupled.contains("seed"));
  EXPECT_FALSE(greedy.contains("seed"));
}

TEST(Generate, CompareReportsBothSpeedsAcceptanceAndIdentity) {
  const Outcome greedy = foresay({"generate", kBundled, "--prompt", kPrompt, "--max-tokens", "48", "--compare"});
  EXPECT_EQ(greedy.status, 0) << greedy.err;
  const std::regex report(
      "[\\s\\S]*\nAR +prompt [0-9.]+ tokens/s, decode [0-9.]+ tokens/s\n"
      "MTP, depth 3 +prompt [0-9.]+ tokens/s, decode [0-9.]+ tokens/s\n"
      "acceptance +[01]\\.[0-9]{2} / [01]\\.[0-9]{2} / [01]\\.[0-9]{2} .*\n"
      "tokens per pass +[1-4]\\.[0-9]{2}\ndecode speed +[0-9.]+ x AR\nidentical to AR: yes\n");
  EXPECT_TRUE(std::regex_match(greedy.out, report)) << greedy.out;

  // Ratio acceptance keeps the distribution, not the draw: different ids are no failure there.
  const Outcome ratio = foresay({"generate", kBundled, "--prompt", kPrompt, "--max-tokens", "48", "--compare",
      "--temperature", "1.5", "--accept", "ratio", "--seed", "1"});
  EXPECT_EQ(ratio.status, 0) << ratio.err;
  expect_parts(ratio.out, {"identical to AR: no (ratio"});

  const Outcome without =
      foresay({"generate", kBundled, "--prompt", "x", "--max-tokens", "3", "--compare", "--mtp", "off"});
  EXPECT_EQ(without.status, 0) << without.err;
  expect_parts(without.out, {"identical to AR: yes"});
  EXPECT_EQ(without.out.find("MTP"), std::string::npos) << without.out;
}

TEST(Generate, ASingleTokenAndTheLastOfTheContextAreFine) {
  EXPECT_EQ(generate_json(kBundled, with(kIds, {"--max-tokens", "1"}))["ids"].size(), 1u);
  TempDir dir;
  auto options = tiny_hybrid();
  options.context = 8;
  const auto folder = write_tiny(dir.path() / "model", options).string();
  for (const std::string depth : {"0", "3"}) {
    const Json d = generate_json(folder, {"--prompt-ids", "1,2,3,4,5", "--depth", depth});
    EXPECT_EQ(d["ids"].size(), 3u);
    EXPECT_EQ(d["finish_reason"], "length");
  }
}

TEST(Generate, AnEndOfTurnTokenStopsUnlessIgnored) {
  TempDir dir;
  const auto folder = write_tiny(dir.path() / "model", tiny()).string();
  const Json all = generate_json(folder, {"--prompt-ids", "1,2,3", "--max-tokens", "12"})["ids"];
  edit_json(fs::path(folder) / "config.json",
      [&](auto& config) { config["text_config"]["eos_token_id"] = nlohmann::json::array({all[4].get<int>()}); });
  const auto first = std::find(all.begin(), all.end(), all[4]) - all.begin();
  for (const std::string depth : {"0", "3"}) {
    const Json stopped = generate_json(folder, {"--prompt-ids", "1,2,3", "--max-tokens", "12", "--depth", depth});
    EXPECT_EQ(stopped["finish_reason"], "stop");
    EXPECT_EQ(stopped["ids"], Json(std::vector<Json>(all.begin(), all.begin() + first + 1)));  // the stop id included
    EXPECT_EQ(generate_json(folder, {"--prompt-ids", "1,2,3", "--max-tokens", "12", "--ignore-eos"})["ids"], all);
  }
}

/// The program where a build or an installation puts it, beside a models folder.
class BundledModel : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BundledModel, IsFoundFromTheExecutableNotTheWorkingDirectory) {
  TempDir dir;
  const auto [place, models] = GetParam();
  fs::create_directories((dir.path() / models).parent_path());
  fs::create_directories((dir.path() / place).parent_path());
  fs::create_directory_symlink(FORESAY_MODELS, dir.path() / models);
  fs::copy_file(FORESAY_PROGRAM, dir.path() / place);
  fs::create_directories(dir.path() / "elsewhere");
  fs::create_symlink(dir.path() / place, dir.path() / "elsewhere" / "linked");
  Command command;
  command.folder = dir.path() / "elsewhere";
  for (const fs::path& program : {dir.path() / place, dir.path() / "elsewhere" / "linked"}) {
    command.program = program;
    const Json d = json_of(foresay({"generate", "--json", "--prompt", "x", "--max-tokens", "2"}, command));
    expect_parts(d["model"], {"tiny-qwen3_5"});
    EXPECT_EQ(json_of(foresay({"inspect", "--json"}, command))["verdict"], "mtp");
  }
  fs::remove(dir.path() / models);
  expect_refused({"generate", "--prompt", "x"}, 2, {"MODEL", "tiny-qwen3_5"}, command);
}

INSTANTIATE_TEST_SUITE_P(Places, BundledModel,
    ::testing::Values(std::pair("build/release/foresay", "models"), std::pair("bin/foresay", "share/foresay/models")));

TEST(Help, EveryVerbHasOneWithAnExample) {
  for (const std::string verb : {"generate", "chat", "verify", "inspect", "eval"}) {
    const Outcome outcome = foresay({verb, "--help"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "");
    expect_parts(outcome.out, {"Example", "foresay " + verb, "--json", "MODEL"});
  }
  expect_parts(foresay({"--help"}).out, {"generate", "chat", "verify", "inspect", "eval", "Example"});
  expect_parts(foresay({"--version"}).out, {"foresay "});
}

}  // namespace
}  // namespace foresay
