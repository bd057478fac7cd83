#include "checkpoint/config.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "checkpoint/expect_error.h"
#include "fixtures/owned_tensor.h"
#include "fixtures/temp_dir.h"

namespace foresay {
namespace {

Config parse(const std::string& text) {
  return {nlohmann::json::parse(text), "config.json"};
}

TEST(Config, ReadsTypedValues) {
  const auto config = parse(R"({"n":5,"x":1e-6,"s":"a","o":{"k":2},"l":["p","q"],"b":true,"z":null})");
  EXPECT_EQ(config.integer("n", 0, 10), 5);
  EXPECT_EQ(config.number("x", 0, 1), 1e-6);
  EXPECT_EQ(config.number("n", 0, 10), 5.0);
  EXPECT_EQ(config.string("s"), "a");
  EXPECT_EQ(config.strings("l"), (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(config.maybe_boolean("b"), true);
  EXPECT_EQ(config.object("o").integer("k", 0, 9), 2);
  EXPECT_EQ(config.object("o").where(), "config.json: o");
}

TEST(Config, NullAndAbsentAreTheSameToOptionalGetters) {
  const auto config = parse(R"({"z":null})");
  for (const std::string key : {"z", "none"}) {
    EXPECT_FALSE(config.has(key));
    EXPECT_EQ(config.maybe_integer(key, 0, 1), std::nullopt);
    EXPECT_EQ(config.maybe_number(key, 0, 1), std::nullopt);
    EXPECT_EQ(config.maybe_boolean(key), std::nullopt);
    EXPECT_EQ(config.maybe_string(key), std::nullopt);
    EXPECT_EQ(config.maybe_strings(key), std::nullopt);
    EXPECT_FALSE(config.maybe_object(key).has_value());
    expect_error(
        ErrorCode::checkpoint, {"config.json", key, "integer from 0 to 1"}, [&] { (void)config.integer(key, 0, 1); });
    expect_error(ErrorCode::checkpoint, {"config.json", key}, [&] { (void)config.object(key); });
  }
}

TEST(Config, WholeNumbersMayBeWrittenAsFloats) {
  const auto config = parse(R"({"a":1e6,"b":10000000.0,"c":2.5,"d":-0.0})");
  EXPECT_EQ(config.integer("a", 0, 1 << 30), 1000000);
  EXPECT_EQ(config.integer("b", 0, 1 << 30), 10000000);
  EXPECT_EQ(config.integer("d", 0, 1), 0);
  expect_error(ErrorCode::checkpoint, {"c", "2.5"}, [&] { (void)config.integer("c", 0, 9); });
}

TEST(Config, ValuesOfTheWrongKindOrSizeAreRefused) {
  const auto config = parse(
      R"({"b":true,"s":"5","big":99999999999999999999,"neg":-1,"huge":1e300,"l":[1],"o":{"a":1},"e":[],"m":["a",2]})");
  for (const std::string key : {"b", "s", "big", "neg", "huge", "l", "o", "e"}) {
    expect_error(ErrorCode::checkpoint, {"config.json: " + key, "expected an integer from 0 to 100", "found"},
        [&] { (void)config.maybe_integer(key, 0, 100); });
    expect_error(ErrorCode::checkpoint, {"config.json: " + key}, [&] { (void)config.number(key, 0, 100); });
  }
  expect_error(ErrorCode::checkpoint, {"b", "a string", "true"}, [&] { (void)config.string("b"); });
  expect_error(ErrorCode::checkpoint, {"neg", "true or false"}, [&] { (void)config.maybe_boolean("neg"); });
  expect_error(ErrorCode::checkpoint, {"l", "an object"}, [&] { (void)config.object("l"); });
  expect_error(ErrorCode::checkpoint, {"s", "array of strings"}, [&] { (void)config.strings("s"); });
  expect_error(ErrorCode::checkpoint, {"m", "2 in it"}, [&] { (void)config.strings("m"); });
}

class ConfigFile : public ::testing::Test {
 protected:
  void expect_refused(const std::string& text, std::vector<std::string> parts) {
    write_text(path_, text);
    parts.push_back(path_.string());
    expect_error(ErrorCode::checkpoint, parts, [&] { (void)Config::read(path_); });
  }

  TempDir dir_;
  std::filesystem::path path_ = dir_.path() / "config.json";
};

TEST_F(ConfigFile, SyntaxErrorsGiveLineAndColumn) {
  expect_refused("{\n  \"a\": 1,\n  \"b\" 2\n}", {"line 3, column 7"});
  expect_refused("{\"a\": tru}", {"line 1, column 10"});
  expect_refused("", {"line 1, column 1"});
  expect_refused("{\"a\":\n1", {"line 2, column"});
  expect_refused("{} {}", {"line 1, column 4"});
}

TEST_F(ConfigFile, MessagesStayShortAndPrintable) {
  write_text(path_, "{\"a\": \"" + std::string(1 << 20, 'x') + "\x1b[31m");
  try {
    (void)Config::read(path_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_LT(std::string(error.what()).size(), 500u);
    EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos);
  }
}

TEST_F(ConfigFile, TextThatIsNoJsonObjectIsRefused) {
  for (const std::string text : {"[]", "3", "null"}) expect_refused(text, {"expected a JSON object"});
  for (const std::string text : {"{\"a\":NaN}", "{\"a\":Infinity}", "{\"a\":-Infinity}", "{'a':1}", "{\"a\":1,}",
           "{\"a\":\"\xff\"}", "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":1e999}", "{\"a\":01}"}) {
    expect_refused(text, {"expected valid JSON"});
  }
}

TEST_F(ConfigFile, DeepNestingIsRefused) {
  expect_refused(std::string(100000, '['), {"64 nested levels", "line 1, column 65"});
  expect_refused("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}", {"64 nested levels"});
}

TEST_F(ConfigFile, TheLastOfTwoEqualKeysCounts) {
  write_text(path_, R"({"a":1,"a":2})");
  EXPECT_EQ(Config::read(path_).integer("a", 0, 9), 2);
  EXPECT_EQ(Config::read(path_).where(), "config.json");
}

TEST_F(ConfigFile, PipesAndFoldersAreRefused) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  expect_error(ErrorCode::checkpoint, {path_.string(), "pipe"}, [&] { (void)Config::read(path_); });
  expect_error(ErrorCode::checkpoint, {"folder"}, [&] { (void)Config::read(dir_.path()); });
}

TEST_F(ConfigFile, EveryTruncationAndChangedByteIsRefusedOrReads) {
  const std::string text =
      R"({"text_config": {"layer_types": ["full_attention"], "eps": 1e-06, "on": true}, "é": null})";
  const auto read = [&](const std::string& damaged) {
    write_text(path_, damaged);
    try {
      (void)Config::read(path_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::checkpoint);
    }
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    read(text.substr(0, i));
    for (int byte = 0; byte < 256; byte += 15) {
      auto damaged = text;
      damaged[i] = static_cast<char>(byte);
      read(damaged);
    }
  }
}

}  // namespace
}  // namespace foresay
