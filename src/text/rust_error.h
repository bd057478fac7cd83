// text/rust_error.h: a failure on the Rust side as a foresay Error.
#pragma once

#include <exception>
#include <string_view>

#include "base/error.h"

namespace foresay {

/// Throws the Error that `failure` stands for. Its text is `KIND|message` (text/rust/src/failure.rs): `invalid` gets
/// the code `invalid_code`, a template's own exception ErrorCode::usage with the bare message. A panic is
/// ErrorCode::checkpoint: every input of that side comes from the checkpoint's files, or was checked before.
[[noreturn]] void throw_rust_error(const std::exception& failure, ErrorCode invalid_code, std::string_view where);

}  // namespace foresay
