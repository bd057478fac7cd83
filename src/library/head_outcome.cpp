#include "library/head_outcome.h"

#include <fmt/format.h>

#include "library/silent_head.h"

namespace foresay {
namespace {

constexpr long kFewestDrafts = 32;  // fewer say nothing about a rate
constexpr double kPoorAcceptance = 0.05;

}  // namespace

HeadOutcome head_outcome(const OpenModel& open, MtpMode mode, const Stats& stats) {
  HeadOutcome outcome = {stats.depth > 0, open.loaded.mtp_reason, {}};
  if (stats.depth == 0 && open.has_head()) outcome.reason = "depth 0 was asked for";
  if (stats.depth == 0 || stats.passes < 2) return outcome;

  const long first_drafts = stats.drafted.front();
  if (first_drafts >= kFewestDrafts) {
    const double rate = static_cast<double>(stats.accepted.front()) / static_cast<double>(first_drafts);
    if (rate < kPoorAcceptance) {
      outcome.warning = fmt::format(
          "only {:.1f} % of first drafts were accepted; the head may be wired wrongly (see the contract in `foresay "
          "inspect`)",
          100 * rate);
    }
  }
  if (first_drafts > 0) return outcome;

  outcome.drafted = false;
  outcome.reason = silent_head(open, mode, "generate");
  outcome.warning = silent_head_warning(outcome.reason);
  return outcome;
}

}  // namespace foresay
