// library/probe.h: how often a head agrees with its model, as it is wired and as it might be.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/report.h"
#include "library/open_model.h"

namespace foresay {

/// A wiring that was tried, and what its drafts were worth in greedy decoding.
struct ProbedWiring {
  std::string change;             ///< from the wiring in force: "concat_order hidden_embedding"; empty for that itself
  std::vector<double> agreement;  ///< by draft position: share of rounds whose draft there survived
  double tokens_per_round = 1;
};

struct Probe {
  std::vector<ProbedWiring> wirings;  ///< the one in force first
  std::vector<std::string> left_out;  ///< changes that the family does not take, with its reason
  bool from_cache = false;
  std::filesystem::path file;  ///< the cache's entry; empty where nothing is kept

  [[nodiscard]] const ProbedWiring& in_force() const { return wirings.front(); }
  [[nodiscard]] const ProbedWiring& best() const;
  /// Tokens per round of the best over those of the best other one, minus 1.
  [[nodiscard]] double margin() const;
  /// Empty, or what is wrong: first drafts agree in less than 5 % of rounds, or another wiring is clearly better.
  [[nodiscard]] std::string warning() const;
};

struct ProbeOptions {
  bool measure_again = false;  ///< also where the cache has an entry
  int tokens = 48;             ///< greedy tokens after each prompt
};

/// Decodes the prompts with the wiring in force and with each that differs from it in one value (hidden state handed
/// over, hidden state recycled, concat order, norm encoding), or takes what an earlier run kept in
/// $XDG_CACHE_HOME/foresay/probes for these files, wiring and build. The trunk is shared; the answers are the same
/// every time. Throws ErrorCode::usage without a head. Engine thread only.
[[nodiscard]] Probe find_probe(const OpenModel& open, std::span<const std::vector<TokenId>> prompts, Report& report,
    const ProbeOptions& options = {});

/// The warning of a probe that was kept for this model as it is wired; empty where there is none. Reads one small file.
[[nodiscard]] std::string kept_probe_warning(const Checkpoint& checkpoint, const Model& model);

}  // namespace foresay
