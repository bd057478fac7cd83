// library/head_outcome.h: what became of the MTP head in a generation.
#pragma once

#include <string>

#include "foresay/stats.h"
#include "library/open_model.h"

namespace foresay {

struct HeadOutcome {
  bool drafted = false;
  std::string reason;   ///< why it took part or not, in words
  std::string warning;  ///< empty, or what is wrong with it; the answer is not affected, its speed is
};

/// What to warn of when the head's drafts hardly ever survive; empty when they do, or are too few to tell.
[[nodiscard]] std::string poor_acceptance(const Stats& stats);

/// Rounds without a single draft mean that the head's logits are not finite: as unusable as a head that does not load,
/// and treated as `mode` says: ErrorCode::mtp_required, ErrorCode::checkpoint, or a warning. Few accepted drafts are a
/// warning too.
[[nodiscard]] HeadOutcome head_outcome(const OpenModel& open, MtpMode mode, const Stats& stats);

}  // namespace foresay
