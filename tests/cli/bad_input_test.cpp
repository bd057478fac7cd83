// Options and prompts that cannot be honoured: one clear message, exit status 2, nothing on stdout.
#include "cli/program.h"

namespace foresay {
namespace {

const std::string kBadUtf8 = "abc\xC3(";

struct BadOption {
  Arguments arguments;
  std::vector<std::string> parts;
};

TEST(BadOption, IsRefusedWithWhatWasExpectedAndFound) {
  const std::vector<BadOption> cases = {
      {{"--depth", "-1"}, {"--depth", "0 to 8", "\"-1\""}},
      {{"--depth", "9"}, {"--depth", "0 to 8", "\"9\""}},
      {{"--depth", "99"}, {"--depth", "\"99\""}},
      {{"--depth", "abc"}, {"--depth", "\"abc\""}},
      {{"--depth", "1.5"}, {"--depth", "\"1.5\""}},
      {{"--depth", ""}, {"--depth", "\"\""}},
      {{"--depth", "99999999999999999999999"}, {"--depth", "999"}},
      {{"--temperature", "nan"}, {"--temperature", "nan"}},
      {{"--temperature", "inf"}, {"--temperature", "inf"}},
      {{"--temperature", "-1"}, {"--temperature", ">= 0", "-1"}},
      {{"--temperature", "warm"}, {"--temperature", "\"warm\""}},
      {{"--top-p", "0"}, {"--top-p", "(0, 1]", "0"}},
      {{"--top-p", "1.5"}, {"--top-p", "1.5"}},
      {{"--top-p", "nan"}, {"--top-p", "nan"}},
      {{"--top-k", "-1"}, {"--top-k", "\"-1\""}},
      {{"--top-k", "4.5"}, {"--top-k", "\"4.5\""}},
      {{"--min-p", "2"}, {"--min-p", "[0, 1)", "2"}},
      {{"--min-p", "-0.1"}, {"--min-p", "-0.1"}},
      {{"--seed", "-1"}, {"--seed", "\"-1\""}},
      {{"--seed", "18446744073709551616"}, {"--seed", "18446744073709551616"}},
      {{"--max-tokens", "0"}, {"--max-tokens", "\"0\""}},
      {{"--max-tokens", "many"}, {"--max-tokens", "\"many\""}},
      {{"--threads", "-2"}, {"--threads", "\"-2\""}},
      {{"--prefill-chunk", "x"}, {"--prefill-chunk", "\"x\""}},
      {{"--accept", "always"}, {"--accept", "ratio, coupled", "\"always\""}},
      {{"--mtp", "yes"}, {"--mtp", "on, auto, off, required", "\"yes\""}},
      {{"--cpu-activations", "int4"}, {"--cpu-activations", "float", "\"int4\""}},
      {{"--stop", kBadUtf8}, {"--stop", "UTF-8", "offset 3"}},
      {{"--system", kBadUtf8}, {"--system", "UTF-8", "offset 3"}},
      {{"--unknown"}, {"--unknown", "generate --help"}},
      {{"second-model"}, {"second-model"}},
      {{"--prompt-ids", "1"}, {"--prompt", "--prompt-ids", "both"}},
      {{"--seed"}, {"--seed"}},
  };
  for (const auto& bad : cases) {
    Arguments arguments = {"generate", kBundled, "--prompt", "x"};
    arguments.insert(arguments.end(), bad.arguments.begin(), bad.arguments.end());
    expect_refused(arguments, 2, bad.parts);
    arguments.push_back("--json");
    if (bad.arguments.size() == 2) expect_refused(arguments, 2, bad.parts);
  }
}

TEST(BadOption, AMissingOrUnknownVerbListsTheVerbs) {
  expect_refused({}, 2, {"generate", "inspect", "eval", "--help"});
  expect_refused({"genrate"}, 2, {"genrate", "--help"});
  expect_refused({"--json"}, 2, {"--json"});
}

TEST(BadPrompt, NoneOrAnEmptyOneIsRefused) {
  expect_refused({"generate", kBundled}, 2, {"--prompt", "neither"});
  expect_refused({"generate", kBundled, "--prompt", ""}, 2, {"--prompt", "nothing"});
  expect_refused({"generate", kBundled, "--prompt-ids", ""}, 2, {"--prompt-ids", "none"});
  expect_refused({"generate", kBundled, "--prompt", "-"}, 2, {"--prompt", "nothing"});
  expect_refused({"generate", kBundled, "--prompt-ids", "-"}, 2, {"--prompt-ids", "none"});
  expect_refused({"generate", kBundled, "--chat", "--prompt-ids", "1"}, 2, {"--chat", "--prompt"});
}

TEST(BadPrompt, InvalidUtf8IsRefusedWithItsPlace) {
  for (const std::string& text : {kBadUtf8, std::string("abc\xF0\x9F\x98"), std::string("abc\xED\xA0\x80")}) {
    for (const bool chat : {false, true}) {
      Arguments arguments = {"generate", kBundled, "--prompt", text};
      if (chat) arguments.push_back("--chat");
      expect_refused(arguments, 2, {"--prompt", "UTF-8", "offset 3"});
      Command command;
      command.input = text;
      arguments[3] = "-";
      expect_refused(arguments, 2, {"--prompt", "UTF-8", "offset 3"}, command);
    }
  }
}

TEST(BadPrompt, IdsThatAreNoneOrOutsideTheVocabularyAreRefused) {
  for (const auto& [ids, part] : std::vector<std::pair<std::string, std::string>>{{"1,x", "\"x\""}, {"-1", "\"-1\""},
           {"1.5", "\"1.5\""}, {"0x10", "\"0x10\""}, {"99999999999", "99999999999"}, {kBadUtf8, "found"}}) {
    expect_refused({"generate", kBundled, "--prompt-ids", ids}, 2, {"--prompt-ids", part});
  }
  expect_refused({"generate", kBundled, "--prompt-ids", "4096"}, 2, {"4096", "vocabulary", "4095"});
  expect_refused({"generate", kBundled, "--prompt-ids", "2147483647", "--compare"}, 2, {"2147483647", "vocabulary"});
}

TEST(BadPrompt, OneThatFillsTheContextIsRefused) {
  std::string ids = "1";
  for (int i = 1; i < 4096; ++i) ids += ",1";
  Command command;
  command.input = ids;
  for (const Arguments& more : {Arguments{}, {"--compare"}, {"--json"}}) {
    Arguments arguments = {"generate", kBundled, "--prompt-ids", "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refused(arguments, 2, {"4096 tokens", "context", "4096"}, command);
  }
  command.input = std::string(200000, 'x');
  expect_refused({"generate", kBundled, "--prompt", "-"}, 2, {"tokens", "context"}, command);
}

}  // namespace
}  // namespace foresay
