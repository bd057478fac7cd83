// text/detokenizer.h: token ids -> text, a token at a time, never half a character.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace foresay {

/// Joins token bytes and gives out what is complete. Invalid bytes become U+FFFD, one per maximal bad sequence, as in
/// Python's decode(errors="replace"). The tokenizer must outlive it.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, bool skip_special = true)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}

  [[nodiscard]] std::string push(TokenId id);  ///< text completed by this token; valid UTF-8, may be empty
  [[nodiscard]] std::string finish();          ///< what is left, with an incomplete tail as U+FFFD

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::string pending_;  ///< bytes of a character that is not complete yet, at most 3
};

/// Bytes of `text` before the first sequence that is invalid or cut off; text.size() when all of it is UTF-8.
[[nodiscard]] std::size_t valid_utf8_prefix(std::string_view text);

}  // namespace foresay
