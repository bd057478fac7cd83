#include "library/costs.h"

#include <fmt/format.h>

#include "base/machine.h"
#include "library/checkpoint_files.h"

namespace foresay {

CostKey cost_key(const Checkpoint& checkpoint, const Model& model) {
  CostKey key;
  key.checkpoint =
      fmt::format("{}; {}", model.info().head_layers > 0 ? "with head" : "without head", checkpoint_files(checkpoint));
  key.machine = fmt::format("{}; {}", machine_name(), model.ops().describe());
  key.build = build_name();
  return key;
}

Costs find_costs(const Checkpoint& checkpoint, const Model& model, Report& report, const CostsOptions& options) {
  const CostKey key = cost_key(checkpoint, model);
  const std::filesystem::path folder = CostCache::default_folder();
  if (folder.empty() || key.build.empty()) return {measure_costs(model, options.measure), false, {}};
  const CostCache cache(folder);
  if (!options.measure_again) {
    if (auto costs = cache.read(key)) return {std::move(*costs), true, cache.file_of(key)};
  }
  Costs costs = {measure_costs(model, options.measure), false, cache.file_of(key)};
  cache.write(key, costs.model, report);
  return costs;
}

}  // namespace foresay
