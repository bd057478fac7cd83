#include "text/tokenizer.h"

#include <foresay_text/src/lib.rs.h>
#include <rust/cxx.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "text/detokenizer.h"
#include "text/rust_error.h"

namespace foresay {

struct Tokenizer::Impl {
  rust::Box<rust_text::Tokenizer> tokenizer;
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::load(const std::filesystem::path& folder) {
  const auto path = folder / "tokenizer.json";
  std::error_code missing;
  const auto size = std::filesystem::file_size(path, missing);  // a folder has none
  std::string json(missing ? 0 : size, '\0');
  if (missing || !std::ifstream(path, std::ios::binary).read(json.data(), static_cast<std::streamsize>(size))) {
    fail(ErrorCode::checkpoint, "[{}] the tokenizer cannot be read", path.string());
  }
  try {
    auto tokenizer = rust_text::tokenizer_from_json({reinterpret_cast<const std::uint8_t*>(json.data()), json.size()});
    return Tokenizer(std::make_unique<Impl>(Impl{std::move(tokenizer)}));
  } catch (const rust::Error& error) {
    throw_rust_error(error, ErrorCode::checkpoint, path.string());
  }
}

std::vector<TokenId> Tokenizer::encode(std::string_view text) const {
  if (const auto valid = valid_utf8_prefix(text); valid < text.size()) {
    fail(ErrorCode::usage, "[tokenizer] the text is not valid UTF-8 at byte {}", valid);
  }
  try {
    const auto ids = impl_->tokenizer->encode({text.data(), text.size()});
    return {ids.begin(), ids.end()};
  } catch (const rust::Error& error) {
    throw_rust_error(error, ErrorCode::internal, "tokenizer");
  }
}

std::string Tokenizer::token_bytes(TokenId id, bool skip_special) const {
  try {
    const auto bytes = impl_->tokenizer->token_bytes(id, skip_special);
    return {bytes.begin(), bytes.end()};
  } catch (const rust::Error& error) {
    throw_rust_error(error, ErrorCode::internal, "tokenizer");
  }
}

std::optional<TokenId> Tokenizer::id_of(std::string_view token) const {
  if (valid_utf8_prefix(token) < token.size()) return std::nullopt;
  try {
    const auto id = impl_->tokenizer->id_of({token.data(), token.size()});
    return id < 0 ? std::nullopt : std::optional<TokenId>(id);
  } catch (const rust::Error& error) {
    throw_rust_error(error, ErrorCode::internal, "tokenizer");
  }
}

int Tokenizer::size() const {
  try {
    return impl_->tokenizer->size();
  } catch (const rust::Error& error) {
    throw_rust_error(error, ErrorCode::internal, "tokenizer");
  }
}

}  // namespace foresay
