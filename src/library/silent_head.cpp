#include "library/silent_head.h"

#include "base/error.h"
#include "checkpoint/finite.h"

namespace foresay {

std::string silent_head(const OpenModel& open, MtpMode mode, std::string_view where) {
  const auto damage = find_non_finite(open.checkpoint);
  std::string reason = "the head's logits are not finite" + (damage ? ": " + *damage : std::string());
  if (mode == MtpMode::automatic) return reason;
  fail(mode == MtpMode::required ? ErrorCode::mtp_required : ErrorCode::checkpoint,
      "[{}] the MTP head in {} cannot be used: {}; mend the file, or run with --mtp auto or --mtp off", where,
      open.checkpoint.head().found_in, reason);
}

std::string silent_head_warning(std::string_view reason) {
  return fmt::format("the MTP head cannot be used: {}; this was plain autoregressive decoding", reason);
}

}  // namespace foresay
