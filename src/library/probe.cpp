#include "library/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/cache_folder.h"
#include "base/error.h"
#include "base/machine.h"
#include "decode/draft/make_mtp_drafter.h"
#include "decode/generate.h"
#include "library/checkpoint_files.h"

namespace foresay {
namespace {

using Json = nlohmann::json;  // keys are sorted, so equal entries are equal texts

constexpr int kFormat = 1;
constexpr int kDepth = 3;
constexpr double kPoorAgreement = 0.05;  // a healthy head agrees in over half of the rounds
constexpr double kClearlyBetter = 0.25;  // of tokens per round: above what a few dozen rounds leave to chance

/// One model's trunk under another's head. Both are of the same checkpoint and lane.
class OtherHead final : public Model {
 public:
  OtherHead(const Model& trunk, const Model& head) : trunk_(trunk), head_(head) {}

  [[nodiscard]] const ModelInfo& info() const override { return head_.info(); }
  [[nodiscard]] const Contract& contract() const override { return head_.contract(); }
  [[nodiscard]] Ops& ops() const override { return trunk_.ops(); }
  [[nodiscard]] std::unique_ptr<CacheSet> make_caches() const override { return trunk_.make_caches(); }
  [[nodiscard]] HeadCaches make_head_caches() const override { return head_.make_head_caches(); }
  [[nodiscard]] Forward forward(const Pass& pass) const override { return trunk_.forward(pass); }
  [[nodiscard]] HeadForward draft(const HeadPass& pass) const override { return head_.draft(pass); }

 private:
  const Model &trunk_, &head_;
};

ContractOverrides all_of(const Contract& contract) {
  return {.base_hidden = contract.base_hidden.value,
      .recycled_hidden = contract.recycled_hidden.value,
      .concat_order = contract.concat_order.value,
      .position_mode = contract.position_mode.value,
      .head_norms = contract.head_norms.value,
      .head_packing = contract.head_packing.value};
}

struct Change {
  std::string words;
  ContractOverrides wiring;
};

/// Every wiring that differs in one value.
std::vector<Change> changes_of(const Model& model) {
  const ContractOverrides now = all_of(model.contract());
  std::vector<Change> changes;
  const auto add = [&]<typename T>(const char* field, std::optional<T> ContractOverrides::* member, T value) {
    if (now.*member == value) return;
    ContractOverrides wiring = now;
    wiring.*member = value;
    changes.push_back({fmt::format("{} {}", field, name_of(value)), wiring});
  };
  for (const HiddenState state : {HiddenState::pre_norm, HiddenState::post_norm}) {
    add("base_hidden", &ContractOverrides::base_hidden, state);
  }
  if (model.info().max_depth > 1) {
    for (const HeadState state : {HeadState::pre_norm, HeadState::post_norm}) {
      add("recycled_hidden", &ContractOverrides::recycled_hidden, RecycledHidden(state));
    }
  }
  for (const ConcatOrder order : {ConcatOrder::embedding_hidden, ConcatOrder::hidden_embedding}) {
    add("concat_order", &ContractOverrides::concat_order, order);
  }
  for (const NormEncoding encoding : {NormEncoding::zero_centred, NormEncoding::absolute}) {
    add("head_norms", &ContractOverrides::head_norms, encoding);
  }
  return changes;
}

ProbedWiring measure(const Model& model, std::string change, std::span<const std::vector<TokenId>> prompts,
    const ProbeOptions& options) {
  ProbedWiring result{.change = std::move(change), .agreement = {}};
  const auto drafter = make_mtp_drafter(model, {});
  std::vector<long> accepted(kDepth);
  long rounds = 0, tokens = 0;
  for (const std::vector<TokenId>& prompt : prompts) {
    GenerateRequest request;
    request.prompt = prompt;
    request.options.depth = std::min(kDepth, model.info().max_depth);
    request.options.max_tokens = options.tokens;
    const Generation done = generate(model, drafter.get(), request);
    rounds += done.stats.passes;
    tokens += std::max(0, done.stats.generated - 1);
    for (std::size_t i = 0; i < done.stats.accepted.size(); ++i) accepted[i] += done.stats.accepted[i];
  }
  for (int i = 0; i < std::min(kDepth, model.info().max_depth); ++i) {
    result.agreement.push_back(
        static_cast<double>(accepted[static_cast<std::size_t>(i)]) / static_cast<double>(std::max(1L, rounds)));
  }
  result.tokens_per_round = static_cast<double>(tokens) / static_cast<double>(std::max(1L, rounds));
  return result;
}

Json key_of(const Checkpoint& checkpoint, const Model& model) {
  const Contract& c = model.contract();
  return {{"checkpoint", checkpoint_files(checkpoint)}, {"build", build_name()},
      {"wiring", {name_of(c.base_hidden.value), name_of(c.recycled_hidden.value), name_of(c.concat_order.value),
                     name_of(c.position_mode.value), name_of(c.head_norms.value), name_of(c.head_packing.value)}}};
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);  // names of files may be no UTF-8
}

std::optional<Probe> read_kept(const std::filesystem::path& file, const Json& key) {
  std::ifstream stream(file);
  if (!stream) return std::nullopt;
  try {
    const Json json = Json::parse(stream);
    if (json.at("format") != kFormat || dump(json.at("key")) != dump(key)) return std::nullopt;
    Probe probe;
    probe.from_cache = true;
    probe.file = file;
    probe.left_out = json.at("left_out").get<std::vector<std::string>>();
    for (const Json& each : json.at("wirings")) {
      probe.wirings.push_back({each.at("change").get<std::string>(), each.at("agreement").get<std::vector<double>>(),
          each.at("tokens_per_round").get<double>()});
    }
    return probe.wirings.empty() ? std::nullopt : std::optional(probe);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void keep(const Probe& probe, const Json& key, Report& report) {
  Json json = {{"format", kFormat}, {"key", key}, {"left_out", probe.left_out}, {"wirings", Json::array()}};
  for (const ProbedWiring& each : probe.wirings) {
    json["wirings"].push_back(
        {{"change", each.change}, {"agreement", each.agreement}, {"tokens_per_round", each.tokens_per_round}});
  }
  try {
    write_cache_entry(probe.file, dump(json) + "\n", "probe");
  } catch (const Error& error) {
    report.warn(fmt::format("{}; the probe is made again next time", error.what()));
  }
}

/// Where the probe of a model is kept; empty where nothing is.
std::filesystem::path file_of(const Json& key) {
  const std::filesystem::path folder = cache_folder("probes");
  return folder.empty() || build_name().empty() ? std::filesystem::path() : cache_entry(folder, dump(key));
}

}  // namespace

const ProbedWiring& Probe::best() const {
  return *std::ranges::max_element(
      wirings, {}, &ProbedWiring::tokens_per_round);  // the one in force if others equal it
}

double Probe::margin() const {
  double other = 0;
  for (const ProbedWiring& each : wirings) {
    if (&each != &best()) other = std::max(other, each.tokens_per_round);
  }
  return other > 0 ? best().tokens_per_round / other - 1 : 0;
}

std::string Probe::warning() const {
  const ProbedWiring& now = in_force();
  const double gain = best().tokens_per_round / now.tokens_per_round - 1;
  const std::string better = gain < kClearlyBetter ? "no other single change does better"
                                                   : fmt::format("{} gives {:.2f} tokens a round in place of {:.2f}",
                                                         best().change, best().tokens_per_round, now.tokens_per_round);
  if (!now.agreement.empty() && now.agreement.front() < kPoorAgreement) {
    return fmt::format(
        "the head's first draft agrees with the model in only {:.1f} % of rounds; it may be wired wrongly: {}",
        100 * now.agreement.front(), better);
  }
  return gain < kClearlyBetter ? std::string() : fmt::format("the head may be wired wrongly: {}", better);
}

Probe find_probe(
    const OpenModel& open, std::span<const std::vector<TokenId>> prompts, Report& report, const ProbeOptions& options) {
  if (!open.has_head()) fail(ErrorCode::usage, "[probe] there is no head to probe: {}", open.loaded.mtp_reason);
  const Json key = key_of(open.checkpoint, open.model());
  const std::filesystem::path file = file_of(key);
  if (!options.measure_again && !file.empty()) {
    if (auto kept = read_kept(file, key)) return *kept;
  }
  Probe probe;
  probe.file = file;
  probe.wirings.push_back(measure(open.model(), "", prompts, options));
  for (const Change& change : changes_of(open.model())) {
    try {
      Report unheard;  // what a load says about a wiring that nobody asked for
      const LoadedModel other =
          load_model(open.checkpoint, *open.ops, {.mtp = MtpMode::on, .contract = change.wiring}, unheard);
      probe.wirings.push_back(measure(OtherHead(open.model(), *other.model), change.words, prompts, options));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::internal) throw;
      probe.left_out.push_back(fmt::format("{}: {}", change.words, error.what()));
    }
  }
  if (!file.empty()) keep(probe, key, report);
  return probe;
}

std::string kept_probe_warning(const Checkpoint& checkpoint, const Model& model) {
  const Json key = key_of(checkpoint, model);
  const std::filesystem::path file = file_of(key);
  const auto kept = file.empty() ? std::nullopt : read_kept(file, key);
  return kept ? kept->warning() : std::string();
}

}  // namespace foresay
