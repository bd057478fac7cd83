#include "cli/silent_head.h"

#include "base/error.h"
#include "checkpoint/finite.h"
#include "cli/output.h"

namespace foresay::cli {

std::string refuse_silent_head(const ModelOptions& options, const OpenModel& open, const char* verb) {
  const auto damage = find_non_finite(open.checkpoint);
  const std::string reason = "the head's logits are not finite" + (damage ? ": " + *damage : std::string());
  const MtpMode mode = mtp_mode(options.mtp);
  if (mode != MtpMode::automatic) {
    fail(mode == MtpMode::required ? ErrorCode::mtp_required : ErrorCode::checkpoint,
        "[{}] the MTP head in {} cannot be used: {}; mend the file, or run with --mtp auto or --mtp off", verb,
        open.checkpoint.head().found_in, reason);
  }
  say(fmt::format("warning: the MTP head cannot be used: {}; this was plain autoregressive decoding\n", reason));
  return reason;
}

}  // namespace foresay::cli
