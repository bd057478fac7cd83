#include "foresay/sampling.h"

#include <cmath>

#include "base/error.h"

namespace foresay {

void validate(const SamplingOptions& options) {
  // Each test is written so that NaN fails it.
  if (!(options.temperature >= 0 && std::isfinite(options.temperature))) {
    fail(ErrorCode::usage, "--temperature: expected a number >= 0, found {}", options.temperature);
  }
  if (options.top_k < 0) {
    fail(ErrorCode::usage, "--top-k: expected a whole number >= 0 (0 is off), found {}", options.top_k);
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    fail(ErrorCode::usage, "--top-p: expected a number in (0, 1], found {}", options.top_p);
  }
  if (!(options.min_p >= 0 && options.min_p < 1)) {
    fail(ErrorCode::usage, "--min-p: expected a number in [0, 1), found {}", options.min_p);
  }
}

}  // namespace foresay
