#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "byte_fallback_tokenizer.h"
#include "text/detokenizer.h"
#include "text_golden.h"

namespace foresay {
namespace {

std::string decode(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool skip_special) {
  Detokenizer detokenizer(tokenizer, skip_special);
  std::string text;
  for (const auto id : ids) text += detokenizer.push(id);
  return text + detokenizer.finish();
}

template <typename Action>
Error error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::internal, "nothing was thrown"};
}

TEST(Tokenizer, EncodesAsTheReferenceDoes) {
  const auto golden = text_golden("tokenizer.json");
  ASSERT_EQ(golden["encode"].size(), 1000u);
  for (const auto& entry : golden["encode"]) {
    const auto text = entry[0].get<std::string>();
    EXPECT_EQ(tiny_tokenizer().encode(text), entry[1].get<std::vector<TokenId>>()) << entry[0];
  }
}

TEST(Tokenizer, DecodesAsTheReferenceDoes) {
  const auto golden = text_golden("tokenizer.json");
  ASSERT_EQ(golden["decode"].size(), 500u);
  for (const auto& entry : golden["decode"]) {
    const auto ids = entry[0].get<std::vector<TokenId>>();
    EXPECT_EQ(decode(tiny_tokenizer(), ids, /*skip_special=*/false), entry[1].get<std::string>()) << entry[0];
    EXPECT_EQ(decode(tiny_tokenizer(), ids, /*skip_special=*/true), entry[2].get<std::string>()) << entry[0];
  }
}

TEST(Tokenizer, AddedTokensAreLiteralTextAndOnlySpecialOnesAreSkipped) {
  const auto& tokenizer = tiny_tokenizer();
  EXPECT_EQ(tokenizer.size(), 4096);
  EXPECT_EQ(tokenizer.id_of("<|im_end|>"), 4091);
  EXPECT_EQ(tokenizer.id_of("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.id_of("\xFF"), std::nullopt);
  EXPECT_EQ(tokenizer.encode("<|im_start|>a</think>"), (std::vector<TokenId>{4090, *tokenizer.id_of("a"), 4093}));
  EXPECT_EQ(tokenizer.token_bytes(4091, false), "<|im_end|>");
  EXPECT_EQ(tokenizer.token_bytes(4091, true), "");
  EXPECT_EQ(tokenizer.token_bytes(4092, true), "<think>");
}

TEST(Tokenizer, IdsOutsideTheVocabularyHaveNoBytes) {
  for (const TokenId id : {-1, 4096, 1 << 30, INT32_MIN, INT32_MAX}) {
    EXPECT_EQ(tiny_tokenizer().token_bytes(id, false), "") << id;
  }
}

TEST(Tokenizer, AddedTokensOfAByteLevelVocabularyAreNotByteDecoded) {
  auto file = nlohmann::ordered_json::parse(std::ifstream(tiny_model() / "tokenizer.json"));
  auto token = file["added_tokens"][3];
  token["id"] = 4096;
  token["content"] = "éèê";  // letters of the byte alphabet: E9 E8 EA
  file["added_tokens"].push_back(token);
  const ScratchFolder folder("added");
  folder.write("tokenizer.json", file.dump());
  EXPECT_EQ(Tokenizer::load(folder.path()).token_bytes(4096, false), "éèê");
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8AndNamesTheByte) {
  for (const std::string bad : {"ab\xC3\x28", "ab\xFF", "ab\xED\xA0\x80", "ab\xF0\x9F\x98"}) {
    const auto error = error_of([&] { (void)tiny_tokenizer().encode(bad); });
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("byte 2"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(tiny_tokenizer().encode("").empty());
}

TEST(Tokenizer, ByteFallbackTokensAreBytesAndTheBlankIsABlank) {
  const ScratchFolder folder("fallback");
  folder.write("tokenizer.json", byte_fallback_tokenizer());
  const auto tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.token_bytes(1 + 0xE4, false), "\xE4");
  EXPECT_EQ(tokenizer.token_bytes(*tokenizer.id_of("▁"), false), " ");
  EXPECT_EQ(tokenizer.token_bytes(*tokenizer.id_of("▁a"), false), " a");
  EXPECT_EQ(tokenizer.token_bytes(*tokenizer.id_of("é"), false), "é");
  EXPECT_EQ(tokenizer.token_bytes(0, true), "");
  EXPECT_EQ(tokenizer.token_bytes(*tokenizer.id_of("<think>"), true), "<think>");
  // The file asks to cut at 4 tokens; a prompt is never cut.
  const std::string text = " a b\n한글 말 \U0001F600";
  EXPECT_EQ(decode(tokenizer, tokenizer.encode(text), true), text);
}

TEST(Tokenizer, EveryHangulSyllableSurvivesEncodingAndIncrementalDecoding) {
  const ScratchFolder folder("hangul");
  folder.write("tokenizer.json", byte_fallback_tokenizer());
  const auto fallback = Tokenizer::load(folder.path());
  std::string all;
  for (const auto* tokenizer : {&tiny_tokenizer(), &fallback}) {
    all.clear();
    for (int c = 0xAC00; c <= 0xD7A3; ++c) {
      const std::string syllable = {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
          static_cast<char>(0x80 | (c & 0x3F))};
      ASSERT_EQ(decode(*tokenizer, tokenizer->encode(syllable), true), syllable);
      all += syllable + (c % 7 ? "" : " ");
    }
    EXPECT_EQ(decode(*tokenizer, tokenizer->encode(all), true), all);
  }
}

TEST(Tokenizer, AMissingOrMalformedFileIsACheckpointError) {
  const ScratchFolder folder("malformed");
  EXPECT_EQ(error_of([&] { (void)Tokenizer::load(folder.path()); }).code(), ErrorCode::checkpoint);
  const auto whole = byte_fallback_tokenizer();
  for (const std::string& text :
      {std::string(), std::string("{}"), std::string("[1]"), std::string("\xFF\xFE"), whole.substr(0, whole.size() / 2),
          std::string(R"({"model":{"type":"BPE","vocab":{"a":4294967295},"merges":[]},"decoder":{"type":"Fuse"}})")}) {
    folder.write("tokenizer.json", text);
    const auto error = error_of([&] { (void)Tokenizer::load(folder.path()); });
    EXPECT_EQ(error.code(), ErrorCode::checkpoint) << text << ": " << error.what();
    EXPECT_NE(std::string(error.what()).find("tokenizer.json"), std::string::npos) << error.what();
  }
}

TEST(Tokenizer, ADecoderThatCannotBeSplitIntoTokensIsUnsupported) {
  const ScratchFolder folder("decoder");
  for (const auto* decoder : {R"({"type":"WordPiece","prefix":"##","cleanup":true})", "null"}) {
    auto file = nlohmann::ordered_json::parse(byte_fallback_tokenizer());
    file["decoder"] = nlohmann::ordered_json::parse(decoder);
    folder.write("tokenizer.json", file.dump());
    EXPECT_EQ(error_of([&] { (void)Tokenizer::load(folder.path()); }).code(), ErrorCode::unsupported) << decoder;
  }
}

}  // namespace
}  // namespace foresay
