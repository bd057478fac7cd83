// text/tokenizer.h: text <-> token ids, by the Hugging Face `tokenizers` crate.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foresay/token.h"

namespace foresay {

/// A loaded tokenizer.json. Immutable; any thread.
class Tokenizer {
 public:
  /// Throws ErrorCode::checkpoint when the file is missing or malformed, ErrorCode::unsupported when its decoder joins
  /// tokens by rules that need more than one token (WordPiece, CTC, none).
  [[nodiscard]] static Tokenizer load(const std::filesystem::path& folder);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// Ids of the text, special tokens written in it included; nothing is added before or after.
  /// Throws ErrorCode::usage when the text is not valid UTF-8 (names the byte offset).
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text) const;

  /// The bytes that a token stands for, exactly as generated text joins them (byte-level and byte-fallback undone). May
  /// be part of a character. Empty for an id outside the vocabulary and, with skip_special, for special tokens.
  [[nodiscard]] std::string token_bytes(TokenId id, bool skip_special) const;

  [[nodiscard]] std::optional<TokenId> id_of(std::string_view token) const;
  [[nodiscard]] int size() const;  ///< largest id + 1, added tokens included

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foresay
