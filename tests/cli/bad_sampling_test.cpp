// Every sampling option with every kind of value that it cannot take: refused by name, exit status 2, before the model
// is opened.
#include "cli/program.h"

namespace foresay {
namespace {

struct Refused {
  std::string option;
  std::string value;
  std::vector<std::string> parts;  ///< beside the option's name
  Arguments more = {};             ///< options that it needs
};

/// NaN, infinities, no number, nothing, and what is just outside the range.
std::vector<Refused> numbers() {
  struct Range {
    std::string option, expected;
    std::vector<std::string> outside;
    Arguments more;
  };
  const std::vector<Range> ranges = {
      {"--temperature", ">= 0", {"-1e-9", "-0.5"}, {}},
      {"--top-p", "in (0, 1]", {"0", "-0.1", "1.0000001"}, {}},
      {"--min-p", "in [0, 1)", {"-0.1", "1", "2"}, {}},
      {"--xtc-probability", "in [0, 1]", {"-0.1", "1.1"}, {}},
      {"--xtc-threshold", "in [0, 0.5]", {"-0.1", "0.51"}, {"--xtc-probability", "0.5"}},
      {"--repetition-penalty", "> 0", {"0", "-1.1"}, {}},
      {"--presence-penalty", "a finite number", {}, {}},
      {"--frequency-penalty", "a finite number", {}, {}},
  };
  std::vector<Refused> all;
  for (Range range : ranges) {
    range.outside.insert(range.outside.end(), {"nan", "-nan", "inf", "-inf", "1e999", "warm", "", "0x1", "1,5", " 1"});
    for (const auto& value : range.outside)
      all.push_back({range.option, value, {range.expected, "\"" + value + "\""}, range.more});
  }
  return all;
}

std::vector<Refused> whole_numbers() {
  struct Range {
    std::string option, least;
    Arguments more;
  };
  const std::vector<Range> ranges = {{"--top-k", "0", {}}, {"--min-tokens-to-keep", "1", {"--min-p", "0.1"}},
      {"--repetition-context-size", "0", {"--repetition-penalty", "1.1"}},
      {"--presence-context-size", "0", {"--presence-penalty", "1"}},
      {"--frequency-context-size", "0", {"--frequency-penalty", "1"}}, {"--seed", "0", {}}, {"--max-tokens", "1", {}},
      {"--depth", "0", {}}, {"--prefill-chunk", "0", {}}, {"--threads", "0", {}}, {"--min-tokens", "0", {}},
      {"--choices", "1", {}}};
  std::vector<Refused> all;
  for (const Range& range : ranges) {
    Arguments outside = {"-1", "1.5", "nan", "many", "", "0x10", "1e3", "99999999999999999999999"};
    if (range.least == "1") outside.push_back("0");
    for (const auto& value : outside)
      all.push_back({range.option, value, {"whole number from " + range.least, "\"" + value}, range.more});
  }
  return all;
}

std::vector<Refused> texts() {
  std::vector<Refused> all = {
      {"--accept", "both", {"ratio, coupled"}},
      {"--accept", "", {"ratio, coupled"}},
      {"--bad-word", "", {"nothing"}},
      {"--bad-word", "abc\xC3(", {"UTF-8", "offset 3"}},
      {"--logprobs", "3", {"--json"}},
      {"--logprobs", "-1", {"whole number from 0"}, {"--json"}},
      {"--logprobs", "1001", {"whole number from 0"}, {"--json"}},
      {"--min-tokens", "9", {"--max-tokens", "8"}, {"--max-tokens", "8"}},
      {"--choices", "2", {"--temperature 0"}},
      {"--choices", "257", {"256"}, {"--temperature", "1"}},
      {"--logit-bias", "7=1", {"two for 7"}, {"--logit-bias", "7=2"}},
      {"--logit-bias", "{\"7\": 1}", {"two for 7"}, {"--logit-bias", "7=2"}},
  };
  for (const std::string bias : {"7", "7=", "=1", "x=1", "-1=1", "7=nan", "7=inf", "7=1e39", "7=1=2", "1.5=1", "{}x",
           "{\"a\": 1}", "{\"7\": \"1\"}", "{\"7\": null}", "{\"7\": NaN}", "[7]", "99999999999=1"})
    all.push_back({"--logit-bias", bias, {"ID=NUMBER", "found"}});
  for (const std::string order :
      {"top_p", "top_p,min_p,xtc,top_k", "top_p,min_p,xtc,top_k,temp", "top_p,min_p,xtc,top_k,top_k",
          "top_p,min_p,xtc,top_k,temperature,top_p", "top_p,min_p,xtc,top_k,temperature,",
          ",top_p,min_p,xtc,top_k,temperature", "top_p, min_p, xtc, top_k, temperature"})
    all.push_back({"--sampler-order", order, {"each once", "top_p,min_p,xtc,top_k,temperature", "found"}});
  return all;
}

/// Options that change nothing without another one.
std::vector<Refused> lonely() {
  return {{"--xtc-threshold", "0.2", {"--xtc-probability"}}, {"--min-tokens-to-keep", "2", {"--min-p"}},
      {"--repetition-context-size", "9", {"--repetition-penalty"}},
      {"--presence-context-size", "9", {"--presence-penalty"}},
      {"--frequency-context-size", "9", {"--frequency-penalty"}}};
}

/// Each is refused by name before the model is opened: there is no such model, and nothing is said about it.
void expect_all_refused(const std::vector<Refused>& all) {
  for (const Refused& refused : all) {
    Arguments arguments = {"generate", "/nonexistent", "--prompt", "x"};
    arguments.insert(arguments.end(), refused.more.begin(), refused.more.end());
    arguments.insert(arguments.end(), {refused.option, refused.value});
    auto parts = refused.parts;
    parts.push_back(refused.option);
    expect_refused(arguments, 2, parts);
  }
}

TEST(BadSampling, NumbersOutOfRangeAndWhatIsNone) {
  expect_all_refused(numbers());
}
TEST(BadSampling, WholeNumbersOutOfRangeAndWhatIsNone) {
  expect_all_refused(whole_numbers());
}
TEST(BadSampling, TextsThatSayNothing) {
  expect_all_refused(texts());
}
TEST(BadSampling, OptionsThatChangeNothingAlone) {
  expect_all_refused(lonely());
}

TEST(BadSamplingForAModel, AnIdOutsideTheVocabularyIsRefusedWhenTheModelIsKnown) {
  const Arguments base = {"generate", kBundled, "--prompt", "x", "--logit-bias"};
  for (const std::string bias : {"4096=1", "{\"1\": 1, \"2147483647\": -1}"}) {
    Arguments arguments = base;
    arguments.push_back(bias);
    expect_refused(arguments, 2, {"--logit-bias", "vocabulary", "4095"});
  }
}

TEST(BadSamplingForAModel, WordsNeedATokenizer) {
  TempDir dir;
  const auto folder = write_tiny(dir.path() / "model", tiny()).string();
  expect_refused({"generate", folder, "--prompt-ids", "1", "--bad-word", "x"}, 3, {"tokenizer.json"});
}

}  // namespace
}  // namespace foresay
