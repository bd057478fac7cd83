// tests/text/byte_fallback_tokenizer.h: a small SentencePiece style tokenizer.json, with byte-fallback and a blank as
// U+2581.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

namespace foresay {

/// Vocabulary: <s> 0 (special), <0x00>..<0xFF> 1..256, then the blank, a few letters and Hangul syllables, one merge,
/// and <think> (added, not special). All else is written in bytes.
inline std::string byte_fallback_tokenizer() {
  using Json = nlohmann::ordered_json;
  Json vocab = {{"<s>", 0}};
  for (int byte = 0; byte < 256; ++byte) vocab[fmt::format("<0x{:02X}>", byte)] = byte + 1;
  for (const auto* token : {"▁", "a", "b", "c", "▁a", "가", "한", "글", "é"}) {
    const auto next = static_cast<int>(vocab.size());
    vocab[token] = next;
  }
  const auto added = [](int id, const char* content, bool special) {
    return Json{{"id", id}, {"content", content}, {"single_word", false}, {"lstrip", false}, {"rstrip", false},
        {"normalized", false}, {"special", special}};
  };
  const auto think = static_cast<int>(vocab.size());
  const auto replace = [](const char* from, const char* to) {
    return Json{{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  };
  Json decoders = Json::array({replace("▁", " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}},
      {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}});
  Json file = {{"version", "1.0"},
      {"truncation", {{"direction", "Right"}, {"max_length", 4}, {"strategy", "LongestFirst"}, {"stride", 0}}},
      {"padding", nullptr}, {"added_tokens", Json::array({added(0, "<s>", true), added(think, "<think>", false)})},
      {"normalizer", replace(" ", "▁")}, {"pre_tokenizer", nullptr}, {"post_processor", nullptr},
      {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}},
      {"model", {{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", nullptr}, {"continuing_subword_prefix", nullptr},
                    {"end_of_word_suffix", nullptr}, {"fuse_unk", false}, {"byte_fallback", true},
                    {"ignore_merges", false}, {"vocab", vocab}, {"merges", Json::array({"▁ a"})}}}};
  return file.dump();
}

}  // namespace foresay
