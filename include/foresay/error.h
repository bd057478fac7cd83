// foresay/error.h: the one exception type, and the kinds of failure that the whole program distinguishes.
#pragma once

#include <stdexcept>
#include <string>

#include "foresay/export.h"

namespace foresay {

/// One value per row of the exit-code table (docs/errors.md).
enum class ErrorCode { internal, usage, checkpoint, unsupported, mtp_required, capacity, check_failed, cancelled };

/// The process exit status for a failure of this kind.
[[nodiscard]] FORESAY_API int exit_code(ErrorCode code) noexcept;

/// A failure that ends a load or a request. Messages say where, what was expected, what was found, and what to do.
class FORESAY_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace foresay
