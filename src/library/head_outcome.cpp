#include "library/head_outcome.h"

#include <fmt/format.h>

#include "library/silent_head.h"

namespace foresay {
namespace {

constexpr long kFewestDrafts = 32;        // fewer say nothing about a rate
constexpr double kPoorAcceptance = 0.05;  // a healthy head keeps over half

}  // namespace

std::string poor_acceptance(const Stats& stats) {
  if (stats.drafted.empty() || stats.drafted.front() < kFewestDrafts) return {};
  const double rate = static_cast<double>(stats.accepted.front()) / static_cast<double>(stats.drafted.front());
  if (rate >= kPoorAcceptance) return {};
  return fmt::format(
      "only {:.1f} % of first drafts were accepted; the head may be wired wrongly (see the contract in `foresay "
      "inspect`)",
      100 * rate);
}

HeadOutcome head_outcome(const OpenModel& open, MtpMode mode, const Stats& stats) {
  HeadOutcome outcome = {stats.depth > 0, open.loaded.mtp_reason, {}};
  if (stats.depth == 0 && open.has_head()) outcome.reason = "depth 0 was asked for";
  if (stats.depth == 0 || stats.passes < 2) return outcome;

  outcome.warning = poor_acceptance(stats);
  if (stats.drafted.front() > 0) return outcome;

  outcome.drafted = false;
  outcome.reason = silent_head(open, mode, "generate");
  outcome.warning = silent_head_warning(outcome.reason);
  return outcome;
}

}  // namespace foresay
