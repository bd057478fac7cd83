#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "byte_fallback_tokenizer.h"
#include "text_golden.h"

namespace foresay {
namespace {

/// The byte-fallback tokenizer gives every byte a token: id 1 + byte.
class Detokenize : public testing::Test {
 protected:
  std::vector<std::string> pieces(std::string_view bytes) const {
    Detokenizer detokenizer(tokenizer_);
    std::vector<std::string> out;
    for (const char c : bytes) out.push_back(detokenizer.push(1 + static_cast<std::uint8_t>(c)));
    out.push_back(detokenizer.finish());
    return out;
  }

  std::string joined(std::string_view bytes) const {
    std::string text;
    for (const auto& piece : pieces(bytes)) text += piece;
    return text;
  }

 private:
  static Tokenizer load() {
    const ScratchFolder folder("detokenizer");
    folder.write("tokenizer.json", byte_fallback_tokenizer());
    return Tokenizer::load(folder.path());
  }
  Tokenizer tokenizer_ = load();
};

TEST_F(Detokenize, HoldsACharacterBackUntilItIsWhole) {
  EXPECT_EQ(pieces("a\xF0\x9F\x98\x80z"), (std::vector<std::string>{"a", "", "", "", "\U0001F600", "z", ""}));
}

TEST_F(Detokenize, AnUnfinishedCharacterBecomesOneReplacement) {
  EXPECT_EQ(pieces("\xF0\x9F x"), (std::vector<std::string>{"", "", "\uFFFD ", "x", ""}));
  EXPECT_EQ(pieces("\xF0\x9F\x98"), (std::vector<std::string>{"", "", "", "\uFFFD"}));
}

// Expected values: Python 3.11, bytes.decode("utf-8", errors="replace").
TEST_F(Detokenize, ReplacesOncePerMaximalSubpart) {
  const std::string r = "\uFFFD";
  EXPECT_EQ(joined("\xC0\x80"), r + r);
  EXPECT_EQ(joined("\xE0\x80\x80"), r + r + r);
  EXPECT_EQ(joined("\xE0\xA0"
                   "a"),
      r + "a");
  EXPECT_EQ(joined("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(joined("\xF4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(joined("\xF0\x90\x80"
                   "a\xC3\xC3\xA9"),
      r + "a" + r + "é");
  EXPECT_EQ(joined("\x80\xBF\xFE\xFF"), r + r + r + r);
  EXPECT_EQ(joined("\xF1\x80\xE1\x80\xC2"
                   "b"),
      r + r + r + "b");
}

/// Replace-decoding by the definition: at each place the longest prefix of a well-formed character goes, whole or
/// replaced.
std::string replace_decode(const std::string& bytes) {
  static const auto is_prefix_of_character = [](const std::string& s) {
    const auto lead = static_cast<std::uint8_t>(s[0]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (s.size() > length || (lead >= 0x80 && lead < 0xC2) || lead > 0xF4) return false;
    std::uint32_t low = length == 1 ? lead : lead & (0x7F >> length);
    std::uint32_t high = low;
    for (std::size_t i = 1; i < length; ++i) {
      if (i < s.size() && (static_cast<std::uint8_t>(s[i]) & 0xC0) != 0x80) return false;
      low = low << 6 | (i < s.size() ? s[i] & 0x3F : 0x00);
      high = high << 6 | (i < s.size() ? s[i] & 0x3F : 0x3F);
    }
    const std::uint32_t least = length == 1 ? 0 : length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
    for (const auto& [from, to] : {std::pair{least, 0xD7FFu}, std::pair{std::max(least, 0xE000u), 0x10FFFFu}}) {
      if (low <= to && high >= from) return true;
    }
    return false;
  };
  static const auto length_of = [](char c) {
    const auto lead = static_cast<std::uint8_t>(c);
    return lead < 0x80 ? 1u : lead < 0xE0 ? 2u : lead < 0xF0 ? 3u : 4u;
  };
  std::string text;
  for (std::size_t i = 0; i < bytes.size();) {
    std::size_t n = 0;
    while (i + n < bytes.size() && is_prefix_of_character(bytes.substr(i, n + 1))) ++n;
    text += n == length_of(bytes[i]) && n > 0 ? bytes.substr(i, n) : "\uFFFD";
    i += std::max<std::size_t>(n, 1);
  }
  return text;
}

TEST_F(Detokenize, AnyBytesGiveTheReplaceDecodingOfTheWhole) {
  std::mt19937 random(7);
  // Bytes near the borders of the well-formed ranges, so that most strings are nearly right.
  const std::string alphabet = "a\x7F\x80\x8F\x90\x9F\xA0\xBF\xC1\xC2\xDF\xE0\xE1\xED\xEE\xEF\xF0\xF1\xF3\xF4\xF5\xFF";
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 12, '\0');
    for (auto& c : bytes) c = round % 3 ? alphabet[random() % alphabet.size()] : static_cast<char>(random() % 256);
    const auto expected = replace_decode(bytes);
    std::string text;
    for (const auto& piece : pieces(bytes)) {
      ASSERT_EQ(valid_utf8_prefix(piece), piece.size());
      text += piece;
    }
    ASSERT_EQ(text, expected);
    ASSERT_EQ(valid_utf8_prefix(bytes) == bytes.size(), expected == bytes);
  }
}

TEST(Detokenizer, TextIsTheSameHoweverTokensAreCut) {
  const auto& tokenizer = tiny_tokenizer();
  const std::string text = "“quotes” ‘it’s’ — naïve 東京 \U0001F469\u200D\U0001F467 e\u0301, \"plain\" don't\n";
  const auto ids = tokenizer.encode(text);
  Detokenizer detokenizer(tokenizer);
  std::string streamed;
  for (const auto id : ids) {
    const auto piece = detokenizer.push(id);
    ASSERT_EQ(valid_utf8_prefix(piece), piece.size());
    streamed += piece;
  }
  EXPECT_EQ(streamed, "“quotes” ‘it’s’ — naïve 東京 \U0001F469\u200D\U0001F467 \u00E9, \"plain\" don't\n");  // NFC
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, ASkippedSpecialTokenDoesNotBreakACharacter) {
  const auto& tokenizer = tiny_tokenizer();
  const auto byte_token = [&](const char* letter) { return *tokenizer.id_of(letter); };
  Detokenizer detokenizer(tokenizer);
  EXPECT_EQ(detokenizer.push(byte_token("Ã")), "");
  EXPECT_EQ(detokenizer.push(4091), "");
  EXPECT_EQ(detokenizer.push(byte_token("©")), "é");
}

TEST(ValidUtf8Prefix, EndsBeforeTheFirstBadSequence) {
  EXPECT_EQ(valid_utf8_prefix(""), 0u);
  EXPECT_EQ(valid_utf8_prefix("aé\U0001F600"), 7u);
  EXPECT_EQ(valid_utf8_prefix("aé\xC3\x28"), 3u);
  EXPECT_EQ(valid_utf8_prefix("aé\xE2\x82"), 3u);
}

}  // namespace
}  // namespace foresay
