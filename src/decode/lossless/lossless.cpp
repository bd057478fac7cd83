#include "decode/lossless/lossless.h"

#include <algorithm>

#include "base/error.h"
#include "decode/lossless/runs.h"

namespace foresay {

std::vector<LosslessCheck> check_lossless(const Model& model, Drafter* drafter, std::span<const LosslessPrompt> prompts,
    const LosslessOptions& options, const std::function<void(const LosslessCheck&)>& on_check) {
  if (prompts.empty()) fail(ErrorCode::usage, "expected at least one prompt, found none");
  LosslessContext context = {model, drafter, prompts, options, {}};
  for (const int depth : options.depths) {
    const int possible = drafter != nullptr ? std::min(depth, drafter->max_depth()) : 0;
    if (possible > 0) context.depths.push_back(possible);
  }
  std::ranges::sort(context.depths);
  context.depths.erase(std::unique(context.depths.begin(), context.depths.end()), context.depths.end());

  std::vector<LosslessCheck> checks;
  const auto run = [&](LosslessCheck (*check)(const LosslessContext&)) {
    checks.push_back(check(context));
    if (on_check) on_check(checks.back());
  };
  run(check_greedy);
  if (!context.depths.empty()) run(check_coupled);
  if (prompts.size() > 1) run(check_together);
  if (!context.depths.empty()) run(check_ratio);
  return checks;
}

bool is_lossless(std::span<const LosslessCheck> checks) {
  return std::ranges::all_of(checks, &LosslessCheck::passed);
}

}  // namespace foresay
