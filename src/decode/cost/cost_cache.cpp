#include "decode/cost/cost_cache.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/cache_folder.h"
#include "base/error.h"

namespace foresay {
namespace {

using Json = nlohmann::json;  // keys are sorted, so equal entries are equal texts

constexpr int kFormat = 1;  // a change of what is measured or written is another number

Json key_json(const CostKey& key) {
  return {{"checkpoint", key.checkpoint}, {"machine", key.machine}, {"build", key.build}};
}

std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);  // names of files may be no UTF-8
}

Json cost_json(const PassCost& cost) {
  return {{"rows", cost.rows}, {"ms", cost.ms}, {"ms_per_position", cost.ms_per_position}};
}

PassCost read_cost(const Json& json) {
  return {json.at("rows").get<int>(), json.at("ms").get<double>(), json.at("ms_per_position").get<double>()};
}

bool is_sane(const PassCost& cost) {
  return cost.rows > 0 && std::isfinite(cost.ms) && cost.ms > 0 && std::isfinite(cost.ms_per_position) &&
         cost.ms_per_position >= 0;
}

bool is_sane(const CostModel& costs) {
  if (costs.passes.empty() || costs.context < 0) return false;
  for (std::size_t i = 0; i < costs.passes.size(); ++i) {
    if (!is_sane(costs.passes[i]) || (i > 0 && costs.passes[i].rows <= costs.passes[i - 1].rows)) return false;
  }
  return costs.draft.rows == 0 || is_sane(costs.draft);
}

}  // namespace

std::filesystem::path CostCache::default_folder() {
  return cache_folder("costs");
}

std::filesystem::path CostCache::file_of(const CostKey& key) const {
  return cache_entry(folder_, dump(key_json(key)));
}

std::optional<CostModel> CostCache::read(const CostKey& key) const {
  std::ifstream stream(file_of(key));
  if (!stream) return std::nullopt;
  try {
    const Json json = Json::parse(stream);
    if (json.at("format") != kFormat || dump(json.at("key")) != dump(key_json(key))) return std::nullopt;
    CostModel costs;
    costs.context = json.at("context").get<int>();
    for (const Json& each : json.at("passes")) costs.passes.push_back(read_cost(each));
    if (!json.at("draft").is_null()) costs.draft = read_cost(json.at("draft"));
    return is_sane(costs) ? std::optional(costs) : std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void CostCache::write(const CostKey& key, const CostModel& costs, Report& report) const {
  Json json = {{"format", kFormat}, {"key", key_json(key)}, {"context", costs.context}, {"passes", Json::array()},
      {"draft", costs.draft.rows == 0 ? Json() : cost_json(costs.draft)}};
  for (const PassCost& pass : costs.passes) json["passes"].push_back(cost_json(pass));
  try {
    write_cache_entry(file_of(key), dump(json, 2) + "\n", "cost");
  } catch (const Error& error) {
    report.warn(fmt::format("{}; costs are measured again next time", error.what()));
  }
}

}  // namespace foresay
