#include "cli/inspect_probe.h"

#include <fmt/format.h>

#include "cli/verify_prompts.h"
#include "library/probe.h"
#include "library/text_model.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPrompts = 3;

std::string name_of_wiring(const ProbedWiring& wiring) {
  return wiring.change.empty() ? "as it is" : wiring.change;
}

}  // namespace

Json probe_json(const OpenModel& open, bool again, Report& report) {
  const TextModel text(open, report);
  std::vector<std::vector<TokenId>> prompts;
  for (const LosslessPrompt& prompt : encode_prompts(built_in_prompts(text), text, kPrompts)) {
    prompts.push_back(prompt.ids);
  }
  const Probe probe = find_probe(open, prompts, report, {.measure_again = again});
  Json wirings = Json::array();
  for (const ProbedWiring& each : probe.wirings) {
    wirings.push_back(
        {{"wiring", name_of_wiring(each)}, {"agreement", each.agreement}, {"tokens_per_round", each.tokens_per_round}});
  }
  if (const std::string warning = probe.warning(); !warning.empty()) report.warn(warning);
  return {{"wirings", std::move(wirings)}, {"best", name_of_wiring(probe.best())}, {"margin", probe.margin()},
      {"left_out", probe.left_out}, {"from_cache", probe.from_cache},
      {"file", probe.file.empty() ? Json() : Json(probe.file.string())}};
}

std::vector<std::pair<std::string, std::string>> probe_lines(const Json& probe) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Json& each : probe["wirings"]) {
    std::string shares;
    for (const Json& share : each["agreement"]) {
      shares += fmt::format("{}{:.2f}", shares.empty() ? "" : " / ", share.get<double>());
    }
    lines.emplace_back("probe", fmt::format("{:<34} drafts survive at {}, {:.2f} tokens a round",
                                    each["wiring"].get<std::string>(), shares, each["tokens_per_round"].get<double>()));
  }
  lines.emplace_back(
      "best wiring", fmt::format("{}, {:.0f} % ahead of the next{}", probe["best"].get<std::string>(),
                         100 * probe["margin"].get<double>(),
                         probe["from_cache"] == true ? ", from " + probe["file"].get<std::string>() : ""));
  return lines;
}

}  // namespace foresay::cli
