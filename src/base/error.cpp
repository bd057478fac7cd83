#include "base/error.h"

namespace foresay {

int exit_code(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::internal:
      return 1;
    case ErrorCode::usage:
      return 2;
    case ErrorCode::checkpoint:
      return 3;
    case ErrorCode::unsupported:
      return 4;
    case ErrorCode::mtp_required:
      return 5;
    case ErrorCode::capacity:
      return 6;
    case ErrorCode::check_failed:
      return 7;
    case ErrorCode::cancelled:
      return 130;
  }
  return 1;
}

}  // namespace foresay
