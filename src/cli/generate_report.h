// cli/generate_report.h: what one generation cost and what its drafts were worth, as JSON and as text.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "cli/generator.h"

namespace foresay::cli {

[[nodiscard]] std::string_view name_of(Finish finish);

/// Was anything drafted at all? A short answer, and a head whose logits are not finite, draft nothing at any depth.
[[nodiscard]] bool has_drafted(const Stats& stats);

/// What was asked of the head, whether it drafted, and why or why not.
struct MtpOutcome {
  std::string requested;  ///< on, auto, off, required
  bool effective = false;
  std::string reason;
};

/// ids, text, finish_reason; with log-probabilities where they were asked for.
[[nodiscard]] nlohmann::ordered_json answer_json(const Answer& answer, const Generator& generator);

/// Several answers as one run: what was generated and drafted is added up, the time is that of the longest.
[[nodiscard]] Stats total_of(std::span<const Answer> answers);

/// "0.88 / 0.78 / 0.71": the share of blocks, by draft position.
[[nodiscard]] std::string acceptance_of(const Stats& stats);

[[nodiscard]] nlohmann::ordered_json stats_json(const Stats& stats, const MtpOutcome& mtp);

/// One run's speed and, where it drafted, its acceptance; a line each.
[[nodiscard]] std::string run_report(const Stats& stats);
/// Both runs of --compare and their ratio.
[[nodiscard]] std::string comparison_report(const Stats& plain, const Stats& drafted);

/// A line for stderr when the head's drafts hardly ever survive, else empty.
[[nodiscard]] std::string poor_acceptance_warning(const Stats& stats);

}  // namespace foresay::cli
