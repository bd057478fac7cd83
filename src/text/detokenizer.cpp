#include "text/detokenizer.h"

#include <cstdint>

namespace foresay {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

enum class Utf8 { valid, incomplete, invalid };

struct Utf8Sequence {
  Utf8 state = Utf8::invalid;
  std::size_t length = 1;  ///< bytes of the character, or of the maximal subpart of one
};

/// The sequence that `text`, which is not empty, begins with.
/// Source: The Unicode Standard, tables 3-7 (well-formed sequences) and 3-8 (maximal subparts).
Utf8Sequence first_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const auto lead = byte(0);
  if (lead < 0x80) return {Utf8::valid, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Utf8::invalid, 1};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {Utf8::incomplete, i};
    // Only the second byte has narrower bounds: they keep out overlong forms, surrogates and what is above U+10FFFF.
    const std::uint8_t low = i > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t high = i > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (byte(i) < low || byte(i) > high) return {Utf8::invalid, i};
  }
  return {Utf8::valid, length};
}

}  // namespace

std::string Detokenizer::push(TokenId id) {
  pending_ += tokenizer_->token_bytes(id, skip_special_);
  std::string text;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const auto [state, length] = first_sequence(rest);
    if (state == Utf8::incomplete) break;
    text += state == Utf8::valid ? rest.substr(0, length) : kReplacement;
    rest.remove_prefix(length);
  }
  pending_ = std::string(rest);
  return text;
}

std::string Detokenizer::finish() {
  const bool is_cut = !pending_.empty();
  pending_.clear();
  return std::string(is_cut ? kReplacement : "");
}

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t valid = 0;
  while (valid < text.size()) {
    const auto [state, length] = first_sequence(text.substr(valid));
    if (state != Utf8::valid) break;
    valid += length;
  }
  return valid;
}

}  // namespace foresay
