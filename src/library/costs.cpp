#include "library/costs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <set>

#include "base/machine.h"

namespace foresay {

CostKey cost_key(const Checkpoint& checkpoint, const Model& model) {
  std::set<std::string> files = {(checkpoint.folder() / "config.json").string()};
  for (const auto& [name, view] : checkpoint.trunk()) files.insert(view.file);
  for (const auto& [name, view] : checkpoint.head().tensors) files.insert(view.file);
  CostKey key;
  key.checkpoint = model.info().head_layers > 0 ? "with head" : "without head";
  for (const std::string& file : files) {
    struct stat status{};
    if (::stat(file.c_str(), &status) != 0) continue;
    // Not the folder: a copy costs the same, and often keeps its times.
    key.checkpoint += fmt::format("; {} {} {}", std::filesystem::path(file).filename().string(), status.st_size,
        static_cast<long long>(status.st_mtime));
  }
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
