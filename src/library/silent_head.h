// library/silent_head.h: a head that was loaded and never drafted, because its logits are not finite.
#pragma once

#include <string>
#include <string_view>

#include "library/open_model.h"

namespace foresay {

/// As unusable as a head that does not load, and treated as `mode` says: throws ErrorCode::mtp_required or checkpoint,
/// or gives the reason back (automatic). Searches the weights for what is to blame.
///   where  for the message: "generate"
[[nodiscard]] std::string silent_head(const OpenModel& open, MtpMode mode, std::string_view where);

/// What to warn of with such a reason.
[[nodiscard]] std::string silent_head_warning(std::string_view reason);

}  // namespace foresay
