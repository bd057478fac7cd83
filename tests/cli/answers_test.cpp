// foresay generate: several answers to one prompt, log-probabilities, and the samplers that look at what was said.
#include <cmath>

#include "cli/program.h"
#include "text/tokenizer.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

const Arguments kSampled = {"--prompt", kPrompt, "--max-tokens", "16", "--ignore-eos", "--temperature", "1"};

Arguments with(Arguments first, const Arguments& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

TEST(Answers, SeveralShareThePromptAndDifferAtOneSeed) {
  const Json d = generate_json(kBundled, with(kSampled, {"--seed", "5", "-n", "3"}));
  EXPECT_FALSE(d.contains("ids"));
  EXPECT_EQ(d["seed"], 5);
  EXPECT_GT(d["stats"]["decode_tok_s"], 0.0);
  ASSERT_EQ(d["choices"].size(), 3u);
  EXPECT_NE(d["choices"][0]["ids"], d["choices"][1]["ids"]);
  EXPECT_NE(d["choices"][1]["ids"], d["choices"][2]["ids"]);
  for (const Json& choice : d["choices"]) {
    EXPECT_EQ(choice["ids"].size(), 16u);
    EXPECT_EQ(choice["finish_reason"], "length");
    EXPECT_EQ(choice["stats"]["depth"], 3);
    EXPECT_FALSE(choice["text"].get<std::string>().empty());
  }
  // The first is the answer that a single one is, and none of them depends on the depth.
  EXPECT_EQ(generate_json(kBundled, with(kSampled, {"--seed", "5"}))["ids"], d["choices"][0]["ids"]);
  const Json plain = generate_json(kBundled, with(kSampled, {"--seed", "5", "--choices", "3", "--depth", "0"}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(plain["choices"][i]["ids"], d["choices"][i]["ids"]) << i;
}

TEST(Answers, AreShownOneAfterAnother) {
  const Arguments arguments = with(kSampled, {"--seed", "5", "-n", "2"});
  const Json d = generate_json(kBundled, arguments);
  const Outcome text = foresay(with({"generate", kBundled}, arguments));
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(text.out, "[choice 0]\n" + d["choices"][0]["text"].get<std::string>() + "\n[choice 1]\n" +
                          d["choices"][1]["text"].get<std::string>() + "\n");
  const Outcome ids = foresay({"generate", kBundled, "--prompt-ids", "259,497", "--max-tokens", "2", "--temperature",
      "1", "-n", "2", "--ignore-eos"});
  EXPECT_EQ(std::ranges::count(ids.out, ','), 2) << ids.out;
}

TEST(Answers, AreComparedAllTogether) {
  EXPECT_EQ(
      generate_json(kBundled, with(kSampled, {"-n", "3", "--compare", "--accept", "coupled"}))["identical"], true);
  EXPECT_EQ(
      generate_json(kBundled, with(kSampled, {"-n", "2", "--compare", "--accept", "ratio"})).contains("seed"), false);
}

TEST(LogProbabilities, AreOfTheModelItselfAndTheSameAtEveryDepth) {
  const Arguments base = with(kSampled, {"--seed", "2", "--top-k", "5", "--logprobs", "3"});
  const Json d = generate_json(kBundled, base);
  const auto tokenizer = Tokenizer::load(kBundled);
  ASSERT_EQ(d["logprobs"].size(), d["ids"].size());
  for (std::size_t i = 0; i < d["ids"].size(); ++i) {
    const Json& row = d["logprobs"][i];
    EXPECT_EQ(row["id"], d["ids"][i]);
    EXPECT_EQ(row["text"], tokenizer.token_bytes(row["id"], false));
    ASSERT_EQ(row["top"].size(), 3u);
    EXPECT_GE(row["top"][0]["logprob"], row["top"][1]["logprob"]);
    EXPECT_GE(row["top"][0]["logprob"], row["logprob"]);
    EXPECT_LE(row["top"][0]["logprob"], 0.0);
  }
  EXPECT_EQ(generate_json(kBundled, with(base, {"--depth", "0"}))["logprobs"], d["logprobs"]);
  EXPECT_TRUE(generate_json(kBundled, with(kSampled, {"--logprobs"}))["logprobs"][0]["top"].empty());
  const Json two = generate_json(kBundled, with(base, {"-n", "2"}));
  EXPECT_EQ(two["choices"][0]["logprobs"], d["logprobs"]);

  TempDir dir;  // ids without a tokenizer have no text
  const auto folder = write_tiny(dir.path() / "model", tiny()).string();
  EXPECT_TRUE(
      generate_json(folder, {"--prompt-ids", "1", "--max-tokens", "1", "--logprobs", "1"})["logprobs"][0]["text"]
          .is_null());
}

TEST(Sampling, EveryOptionChangesTheAnswerAndKeepsItLossless) {
  const Arguments base = with(kSampled, {"--seed", "3", "--compare"});
  const Json plain = generate_json(kBundled, base)["ids"];
  for (const Arguments& more : {Arguments{"--xtc-probability", "1", "--xtc-threshold", "0.05"},
           {"--repetition-penalty", "2", "--repetition-context-size", "0"},
           {"--presence-penalty", "3", "--presence-context-size", "50"}, {"--frequency-penalty", "3"},
           {"--logit-bias", "{\"65\": 12, \"66\": 11.5}"}, {"--min-p", "0.3", "--min-tokens-to-keep", "2"},
           {"--sampler-order", "temperature,top_k,xtc,min_p,top_p", "--temperature", "2", "--top-p", "0.5"}}) {
    Arguments arguments = base;
    if (more.size() > 2 && more[2] == "--temperature")
      std::erase(arguments, "--temperature"), std::erase(arguments, "1");
    const Json d = generate_json(kBundled, with(arguments, more));
    EXPECT_NE(d["ids"], plain) << joined(more);
    EXPECT_EQ(d["identical"], true) << joined(more);
  }
}

TEST(Sampling, ABiasForbidsOrForcesAToken) {
  const Json forced =
      generate_json(kBundled, {"--prompt", kPrompt, "--max-tokens", "4", "--ignore-eos", "--logit-bias", "77=1000"});
  EXPECT_EQ(forced["ids"], Json({77, 77, 77, 77}));
  const Json plain = generate_json(kBundled, {"--prompt", kPrompt, "--max-tokens", "8", "--ignore-eos"});
  const std::string first = plain["ids"][0].dump();
  const Json without = generate_json(
      kBundled, {"--prompt", kPrompt, "--max-tokens", "8", "--ignore-eos", "--logit-bias", first + "=-1000"});
  EXPECT_EQ(std::ranges::count(without["ids"], plain["ids"][0]), 0);
}

TEST(Sampling, ABadWordIsNeverWritten) {
  const Arguments base = {"--prompt", kPrompt, "--max-tokens", "24", "--ignore-eos"};
  const std::string text = generate_json(kBundled, base)["text"];
  ASSERT_NE(text.find("path"), std::string::npos) << text;
  const std::string without = generate_json(kBundled, with(base, {"--bad-word", "path"}))["text"];
  EXPECT_EQ(without.find(" path"), std::string::npos) << without;
}

TEST(Sampling, MinTokensHoldsBackTheEndOfTheTurn) {
  TempDir dir;
  const auto folder = write_tiny(dir.path() / "model", tiny()).string();
  const Json all = generate_json(folder, {"--prompt-ids", "1,2,3", "--max-tokens", "12"})["ids"];
  edit_json(fs::path(folder) / "config.json",
      [&](auto& config) { config["text_config"]["eos_token_id"] = nlohmann::json::array({all[0].get<int>()}); });
  EXPECT_EQ(generate_json(folder, {"--prompt-ids", "1,2,3", "--max-tokens", "12"})["ids"].size(), 1u);
  for (const std::string depth : {"0", "3"}) {
    const Json held = generate_json(
        folder, {"--prompt-ids", "1,2,3", "--max-tokens", "12", "--min-tokens", "5", "--depth", depth})["ids"];
    EXPECT_GE(held.size(), 6u);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_NE(held[i], all[0]);
  }
}

}  // namespace
}  // namespace foresay
