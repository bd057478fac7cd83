// What generate writes while it runs: streamed text, stop strings, half characters; and the ends it may meet: Ctrl-C, a
// reader that leaves, a full disk.
#include <csignal>

#include "cli/program.h"
#include "text/tokenizer.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

const std::string kWide =
    "# \xF0\x9F\x98\x80 \xE4\xBD\xA0\xE5\xA5\xBD \xED\x95\x9C\xEA\xB8\x80 caf\xC3\xA9 'x' \xE2\x80\x94\n";

/// Both ways of asking for the same text; stdout's is without the line end that closes it.
struct Both {
  std::string streamed;
  Json document;
};

Both generate_both(const std::string& model, Arguments arguments) {
  Both both;
  both.document = generate_json(model, arguments);
  arguments.insert(arguments.begin(), {"generate", model});
  const Outcome outcome = foresay(arguments);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.ends_with("\n"));
  both.streamed = outcome.out.substr(0, outcome.out.size() - 1);
  return both;
}

TEST(Stream, StreamedTextEqualsTheJsonTextAtEveryDepth) {  // B37
  // A high temperature brings bytes of characters in any order, also invalid ones.
  for (const Arguments& sampling : {Arguments{}, {"--temperature", "3", "--seed", "5"}}) {
    std::string first;
    for (const std::string depth : {"0", "1", "2", "3", "4"}) {
      Arguments arguments = {"--prompt", kWide, "--max-tokens", "40", "--ignore-eos", "--depth", depth};
      arguments.insert(arguments.end(), sampling.begin(), sampling.end());
      const Both both = generate_both(kBundled, arguments);
      EXPECT_EQ(both.streamed, both.document["text"]) << "depth " << depth;
      if (depth == "0") first = both.streamed;
      EXPECT_EQ(both.streamed, first) << "depth " << depth;
    }
    EXPECT_FALSE(first.empty());
  }
}

TEST(Stream, IdsAreStreamedAsAList) {
  const Both both = generate_both(kBundled, {"--prompt-ids", "259,497", "--max-tokens", "7"});
  EXPECT_EQ("[" + both.streamed + "]", both.document["ids"].dump());
}

TEST(Stream, HalfACharacterAtTheEndBecomesOneReplacement) {  // B73
  // A model that can only say lead bytes: of two opposite rows of the output matrix one is always above the other
  // zeros.
  TempDir dir;
  auto options = tiny();
  options.vocab = 4096;
  const auto folder = write_tiny(dir.path() / "model", options);
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"}) {
    fs::copy_file(fs::path(kBundled) / file, folder / file);
  }
  const auto tokenizer = Tokenizer::load(folder);
  std::vector<std::size_t> rows;
  for (TokenId id = 0; id < tokenizer.size(); ++id) {
    const std::string bytes = tokenizer.token_bytes(id, true);
    if (bytes == "\xF0" || bytes == "\xE4") rows.push_back(static_cast<std::size_t>(id));
  }
  ASSERT_EQ(rows.size(), 2u);
  edit_tensors(folder / "model.safetensors", [&](TensorMap& tensors) {
    auto& output = tensors.at("lm_head.weight");
    const auto width = static_cast<std::size_t>(output.shape[1]);
    std::vector<float> values(output.to_float().size());
    for (std::size_t i = 0; i < width; ++i) {
      values[rows[0] * width + i] = 1.0f;
      values[rows[1] * width + i] = -1.0f;
    }
    output = OwnedTensor::of(output.dtype, output.shape, values);
  });
  for (const std::string count : {"1", "2", "5"}) {
    for (const std::string depth : {"0", "3"}) {
      const Both both = generate_both(folder.string(), {"--prompt", "x", "--max-tokens", count, "--depth", depth});
      std::string expected;
      for (int i = 0; i < std::stoi(count); ++i) expected += "\xEF\xBF\xBD";
      EXPECT_EQ(both.streamed, expected);
      EXPECT_EQ(both.document["text"], expected);
    }
  }
}

TEST(Stream, AStopStringOverTokenBordersCutsTheTextAtEveryDepth) {  // B67
  const auto tokenizer = Tokenizer::load(kBundled);
  const Arguments base = {"--prompt", kPrompt, "--max-tokens", "40", "--ignore-eos"};
  const Json all = generate_json(kBundled, base);
  const std::string text = all["text"];
  std::string before, stop;  // the end of one token and the beginning of the next, first seen there
  for (std::size_t i = 8; i + 1 < all["ids"].size() && stop.empty(); ++i) {
    before.clear();
    for (std::size_t j = 0; j <= i; ++j) before += tokenizer.token_bytes(all["ids"][j], true);
    const std::string candidate = text.substr(before.size() - 2, 4);
    if (text.find(candidate) == before.size() - 2) stop = candidate;
  }
  ASSERT_EQ(stop.size(), 4u);
  const std::string expected = text.substr(0, text.find(stop));
  Json ids;
  for (const std::string depth : {"0", "1", "2", "3", "4"}) {
    Arguments arguments = base;
    arguments.insert(arguments.end(), {"--depth", depth, "--stop", "never said", "--stop", stop});
    const Both both = generate_both(kBundled, arguments);
    EXPECT_EQ(both.document["text"], expected) << "depth " << depth;
    EXPECT_EQ(both.streamed, expected) << "depth " << depth;
    EXPECT_EQ(both.document["finish_reason"], "stop");
    if (ids.is_null()) ids = both.document["ids"];
    EXPECT_EQ(both.document["ids"], ids) << "depth " << depth;
  }
}

TEST(Stream, CtrlCKeepsWhatWasGeneratedAndExits130) {
  Command command;
  command.signal = SIGINT;
  const Outcome cut =
      foresay({"generate", kBundled, "--prompt-ids", "259,497", "--max-tokens", "4000", "--ignore-eos"}, command);
  EXPECT_EQ(cut.status, 130) << cut.err;
  EXPECT_EQ(cut.signal, 0);
  expect_parts(cut.err, {"interrupted"});
  const auto got = Json::parse("[" + cut.out + "]");
  ASSERT_LT(got.size(), 4000u);
  ASSERT_GT(got.size(), 0u);
  const Json whole =
      generate_json(kBundled, {"--prompt-ids", "259,497", "--ignore-eos", "--max-tokens", std::to_string(got.size())});
  EXPECT_EQ(got, whole["ids"]);
}

TEST(Stream, CtrlCInJsonModeStillGivesOneDocument) {
  TempDir dir;
  auto options = tiny_hybrid();
  options.head = false;  // its warning on stderr says that the program has started
  options.context = 1 << 20;
  const auto folder = write_tiny(dir.path() / "model", options).string();
  Command command;
  command.signal = SIGINT;
  command.signal_after = 0;
  const Outcome cut =
      foresay({"generate", folder, "--json", "--compare", "--prompt-ids", "1,2", "--max-tokens", "1000000"}, command);
  const Json d = json_of(cut, 130);
  EXPECT_EQ(d["finish_reason"], "cancelled");
  EXPECT_LT(d["ids"].size(), 1000000u);
  EXPECT_FALSE(d.contains("identical"));
  EXPECT_GE(d["stats"]["decode_tok_s"], 0.0);
}

TEST(Stream, TerminationEndsTheProgram) {
  Command command;
  command.signal = SIGTERM;
  const Outcome cut =
      foresay({"generate", kBundled, "--prompt-ids", "259,497", "--max-tokens", "4000", "--ignore-eos"}, command);
  EXPECT_EQ(cut.signal, SIGTERM);
  EXPECT_FALSE(cut.out.empty());
}

class BadStdout : public ::testing::TestWithParam<StdoutKind> {};

TEST_P(BadStdout, IsAResourceFailureForEveryVerb) {
  TempDir dir;
  const auto out = dir.path() / "out.safetensors";
  Command command;
  command.stdout_kind = GetParam();
  for (const Arguments& arguments : {Arguments{"generate", kBundled, "--prompt", kPrompt, "--max-tokens", "8"},
           {"generate", kBundled, "--prompt", kPrompt, "--max-tokens", "8", "--json"},
           {"generate", kBundled, "--prompt-ids", "1,2", "--max-tokens", "4", "--compare"}, {"inspect", kBundled},
           {"inspect", kBundled, "--json"}, {"eval", kBundled, "--ids", "1,2,3", "--out", out.string()}, {"--help"},
           {"generate", "--help"}, {"--version"}}) {
    expect_refused(arguments, 6, {"stdout"}, command);
  }
  // Nothing that was meant for stdout went into the file that was opened meanwhile.
  EXPECT_EQ(read_tensors(out).at("logits").shape, (std::vector<std::int64_t>{3, 4096}));
}

INSTANTIATE_TEST_SUITE_P(Kinds, BadStdout, ::testing::Values(StdoutKind::closed, StdoutKind::cut_pipe));
#if defined(__linux__)  // has /dev/full
INSTANTIATE_TEST_SUITE_P(LinuxKinds, BadStdout, ::testing::Values(StdoutKind::full));
#endif

TEST(Stream, AReaderThatLeavesEndsTheRun) {
  Command command;
  command.stdout_kind = StdoutKind::cut_pipe;
  command.read_bytes = 5;
  const Outcome outcome =
      foresay({"generate", kBundled, "--prompt-ids", "259,497", "--max-tokens", "4000", "--ignore-eos"}, command);
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_EQ(outcome.out.size(), 5u);
}

TEST(Stream, AClosedStderrChangesNothing) {
  Command command;
  command.close_stderr = true;
  const Arguments arguments = {"generate", kBundled, "--prompt", kPrompt, "--max-tokens", "8"};
  const Outcome outcome = foresay(arguments, command);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, foresay(arguments).out);
  EXPECT_EQ(foresay({"generate", "/nonexistent", "--prompt", "x"}, command).status, 2);
}

TEST(Stream, AClosedStdinIsAMissingPrompt) {
  Command command;
  command.close_stdin = true;
  expect_refused({"generate", kBundled, "--prompt", "-"}, 2, {"--prompt", "stdin"}, command);
  EXPECT_EQ(foresay({"generate", kBundled, "--prompt", "x", "--max-tokens", "1"}, command).status, 0);
}

}  // namespace
}  // namespace foresay
