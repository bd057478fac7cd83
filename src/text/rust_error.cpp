#include "text/rust_error.h"

#include <string>

namespace foresay {

void throw_rust_error(const std::exception& failure, ErrorCode invalid_code, std::string_view where) {
  const std::string_view text = failure.what();
  const auto bar = text.find('|');
  const auto kind = text.substr(0, bar);
  const auto message = bar == std::string_view::npos ? text : text.substr(bar + 1);
  if (kind == "raised" && message.empty()) {
    fail(ErrorCode::usage, "[{}] it refuses these messages and does not say why", where);
  }
  if (kind == "raised") throw Error(ErrorCode::usage, std::string(message));
  if (kind == "panicked") fail(ErrorCode::checkpoint, "[{}] the library that reads it gave up: {}", where, message);
  const auto code = kind == "invalid"       ? invalid_code
                    : kind == "unsupported" ? ErrorCode::unsupported
                                            : ErrorCode::internal;
  fail(code, "[{}] {}", where, message);
}

}  // namespace foresay
