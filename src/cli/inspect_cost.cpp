#include "cli/inspect_cost.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cli/option_values.h"
#include "library/costs.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostDrafts = 8;

}  // namespace

void add_cost_options(CLI::App& app, CostOptions& options) {
  auto* const cost = app.add_flag("--cost", options.wanted,
      "Also say what target passes and draft steps cost here, and what drafting gains: measured in about 1.5 s, then "
      "kept in $XDG_CACHE_HOME/foresay/costs (~/.cache) for this checkpoint, machine and build");
  app.add_option("--acceptance", options.acceptance_text,
         "Shares of rounds in which draft 1, 2, ... survives: 0.85,0.72,0.60. Gives tokens/s per depth; without it, "
         "the "
         "survival of a draft from which on a depth pays")
      ->check(not_empty())
      ->needs(cost);
  app.add_option("--context", options.context, "Positions in the caches that the figures are for")
      ->check(whole_number(0, 1 << 24))
      ->capture_default_str()
      ->needs(cost);
}

void check_cost_options(CostOptions& options) {
  const std::string_view text = options.acceptance_text;
  for (std::size_t at = 0; !text.empty() && at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view piece = text.substr(at, end - at);
    const auto share = parse_double(piece);
    const double most = options.acceptance.empty() ? 1 : options.acceptance.back();
    if (!share || !(*share >= 0) || *share > most) {
      fail(ErrorCode::usage, "--acceptance: {}",
          mismatch(fmt::format("shares from 0 to 1 that do not rise, such as 0.85,0.72,0.60, here at most {}", most),
              piece));
    }
    options.acceptance.push_back(*share);
    at = end + 1;
  }
  if (options.acceptance.size() > kMostDrafts) {
    fail(ErrorCode::usage, "--acceptance: expected at most {} shares, one per draft, found {}", kMostDrafts,
        options.acceptance.size());
  }
}

Json cost_json(const Checkpoint& checkpoint, const Model& model, Report& report, const CostOptions& options) {
  const Costs costs = find_costs(checkpoint, model, report, {.measure_again = options.again, .measure = {}});
  const int context = options.context;
  const double one = costs.model.pass_ms(1, context);
  Json passes = Json::array();
  for (const PassCost& pass : costs.model.passes) {
    const double ms = costs.model.pass_ms(pass.rows, context);
    passes.push_back({{"rows", pass.rows}, {"ms", ms}, {"ratio", ms / one}, {"ms_per_position", pass.ms_per_position}});
  }
  Json out = {{"context", context}, {"passes", std::move(passes)}, {"draft", nullptr}, {"depths", Json::array()},
      {"from_cache", costs.from_cache}, {"file", costs.file.empty() ? Json() : Json(costs.file.string())}};
  if (costs.model.draft.rows == 0) return out;
  const double draft = costs.model.draft_ms(context);
  out["draft"] = {{"ms", draft}, {"ratio", draft / one}, {"ms_per_position", costs.model.draft.ms_per_position}};
  const double plain = costs.model.tokens_per_second(0, {}, context);
  const auto given = static_cast<int>(options.acceptance.size());
  const int deepest = given > 0 ? std::min(given, model.info().max_depth) : model.info().max_depth;
  for (int depth = 1; depth <= deepest; ++depth) {
    Json entry = {{"depth", depth}, {"round_ms", costs.model.round_ms(depth, context)}};
    if (given > 0) {
      const double speed = costs.model.tokens_per_second(depth, options.acceptance, context);
      entry["tokens_per_second"] = speed;
      entry["speedup"] = speed / plain;
    } else {
      const auto survival = costs.model.break_even(depth, context);
      entry["break_even"] = survival ? Json(*survival) : Json();
    }
    out["depths"].push_back(std::move(entry));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> cost_lines(const Json& cost) {
  std::vector<std::pair<std::string, std::string>> lines;
  const auto number = [](const Json& value) { return value.get<double>(); };
  lines.emplace_back("costs", fmt::format("with {} positions in the caches{}", cost["context"].dump(),
                                  cost["from_cache"] == true ? ", from " + cost["file"].get<std::string>() : ""));
  for (const Json& pass : cost["passes"]) {
    lines.emplace_back(fmt::format("pass, {} row{}", pass["rows"].dump(), pass["rows"] == 1 ? "" : "s"),
        fmt::format("{:.3f} ms, {:.2f} of one row", number(pass["ms"]), number(pass["ratio"])));
  }
  if (!cost["draft"].is_null()) {
    const Json& draft = cost["draft"];
    lines.emplace_back(
        "draft step", fmt::format("{:.3f} ms, {:.2f} of one row", number(draft["ms"]), number(draft["ratio"])));
  }
  for (const Json& depth : cost["depths"]) {
    std::string gain;
    if (depth.contains("speedup")) {
      gain = fmt::format(
          "{:.1f} tokens/s, {:.2f} times plain decoding", number(depth["tokens_per_second"]), number(depth["speedup"]));
    } else if (depth["break_even"].is_null()) {
      gain = "does not pay even if every draft survives";
    } else {
      gain = fmt::format(
          "pays where more than {:.1f} % of drafts survive, given those before", 100 * number(depth["break_even"]));
    }
    lines.emplace_back(fmt::format("depth {}", depth["depth"].dump()), gain);
  }
  return lines;
}

}  // namespace foresay::cli
