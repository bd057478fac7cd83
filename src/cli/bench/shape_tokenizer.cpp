// A byte-level BPE of a given size: 256 bytes, then merges of earlier tokens that look like pieces of words.
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "cli/bench/shape_parts.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongest = 12;         // bytes of a token
constexpr std::uint64_t kSeed = 0x70CE21A5;  // any; a file made twice is the same

struct Token {
  std::string text;  ///< as tokenizer.json writes it: a character for each byte
  std::size_t bytes = 1;
  bool high = false;  ///< bytes of other scripts, which do not mix with ASCII
};

struct Merge {
  std::size_t left, right;
};

/// GPT-2's alphabet: printable bytes are themselves, the others follow from U+0100 on.
std::vector<Token> byte_tokens() {
  const auto printable = [](int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
  };
  std::vector<Token> tokens;
  const auto add = [&](int code, int byte) {
    Token token;
    if (code < 0x80) {
      token.text = std::string(1, static_cast<char>(code));
    } else {
      token.text = {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
    }
    token.high = byte >= 0x80;
    tokens.push_back(std::move(token));
  };
  for (int byte = 0; byte < 256; ++byte) {
    if (printable(byte)) add(byte, byte);
  }
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    if (!printable(byte)) add(next++, byte);
  }
  return tokens;
}

/// Letters, the blank that begins a word, and bytes of other scripts.
std::vector<std::size_t> building_blocks(const std::vector<Token>& bytes) {
  std::vector<std::size_t> blocks;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::string& text = bytes[i].text;
    const bool letter = text.size() == 1 && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
    if (letter || text == "Ġ" || bytes[i].high) blocks.push_back(i);
  }
  return blocks;
}

std::vector<Merge> make_merges(std::vector<Token>& tokens, std::size_t size) {
  const std::vector<std::size_t> blocks = building_blocks(tokens);
  std::unordered_set<std::string> known;
  for (const Token& token : tokens) known.insert(token.text);
  std::vector<Merge> merges;
  std::uint64_t drawn = 0;
  const auto pick = [&] {  // early tokens, which are common, more often than late ones
    const double u = static_cast<double>(random_bits(kSeed, drawn++) >> 11) * 0x1p-53;
    const std::size_t made = tokens.size() - 256, pool = blocks.size() + made;
    const auto at = static_cast<std::size_t>(u * u * static_cast<double>(pool));
    return at < blocks.size() ? blocks[at] : 256 + (at - blocks.size());
  };
  while (tokens.size() < size) {
    const Merge merge = {pick(), pick()};
    const Token &left = tokens[merge.left], &right = tokens[merge.right];
    if (left.high != right.high || left.bytes + right.bytes > kLongest || right.text.find("Ġ") != std::string::npos) {
      continue;
    }
    Token token = {left.text + right.text, left.bytes + right.bytes, left.high};
    if (!known.insert(token.text).second) continue;
    merges.push_back(merge);
    tokens.push_back(std::move(token));
  }
  return merges;
}

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

/// Everything but vocabulary and merges.
Json frame(const Shape& shape) {
  Json added = Json::array();
  int id = first_added_id(shape);
  for (const AddedToken& token : added_tokens()) {
    added.push_back({{"id", id++}, {"content", token.content}, {"single_word", false}, {"lstrip", false},
        {"rstrip", false}, {"normalized", false}, {"special", token.special}});
  }
  const Json split = {
      {"type", "Split"}, {"pattern", {{"Regex", kPretokenise}}}, {"behavior", "Isolated"}, {"invert", false}};
  const auto byte_level = [](bool on) {
    return Json{{"type", "ByteLevel"}, {"add_prefix_space", on}, {"trim_offsets", on}, {"use_regex", on}};
  };
  return {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}, {"added_tokens", added},
      {"normalizer", {{"type", "NFC"}}},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, byte_level(false)}}}},
      {"post_processor", byte_level(false)}, {"decoder", byte_level(true)},
      {"model", {{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", nullptr}, {"continuing_subword_prefix", nullptr},
                    {"end_of_word_suffix", nullptr}, {"fuse_unk", false}, {"byte_fallback", false},
                    {"ignore_merges", false}}}};
}

}  // namespace

void write_tokenizer(const std::filesystem::path& folder, const Shape& shape) {
  std::vector<Token> tokens = byte_tokens();
  const std::vector<Merge> merges = make_merges(tokens, static_cast<std::size_t>(first_added_id(shape)));
  std::string text = frame(shape).dump(2);
  text.resize(text.rfind("false") + 5);  // the model's last value; the two long lists follow, indented as others do
  text += ",\n    \"vocab\": {";
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    text += fmt::format("{}\n      {}: {}", i == 0 ? "" : ",", json_string(tokens[i].text), i);
  }
  text += "\n    },\n    \"merges\": [";
  for (std::size_t i = 0; i < merges.size(); ++i) {
    text += fmt::format("{}\n      [\n        {},\n        {}\n      ]", i == 0 ? "" : ",",
        json_string(tokens[merges[i].left].text), json_string(tokens[merges[i].right].text));
  }
  text += "\n    ]\n  }\n}\n";
  const std::filesystem::path file = folder / "tokenizer.json";
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) fail(ErrorCode::capacity, "[bench] {}: cannot write it; free disk space", file.string());
}

}  // namespace foresay::cli
