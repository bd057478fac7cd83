#include "model/contract_sources.h"

#include <set>

#include "base/error.h"
#include "base/temporary_file.h"

namespace foresay {
namespace {

constexpr const char* kOwnFile = "foresay.json";
constexpr int kVersion = 1;

/// A key's value as text; nothing where it is absent or leaves the decision to others ("auto", "contract").
std::optional<std::string> stated_text(const Config& config, const std::string& key) {
  auto text = config.maybe_string(key);
  return text && *text != "auto" && *text != "contract" ? text : std::nullopt;
}

/// Takes the first of the keys that states a value, unless a stronger source did already. All of them are checked.
template <typename T>
void take(std::optional<Decided<T>>& decided, const Config& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto text = stated_text(config, key);
    if (!text) continue;
    const auto value = contract_value<T>(*text);
    if (!value) {
      fail(ErrorCode::checkpoint, "[contract] {}: {}: expected {}, found \"{}\"; correct the file", config.where(), key,
          contract_choices<T>(), *text);
    }
    if (!decided) decided = Decided<T>{*value, fmt::format("{}: {}", config.where(), key)};
  }
}

void take_own(StatedContract& stated, const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return;
  const Config file = Config::read(path);
  if (const int version = file.integer("foresay", 1, 1 << 20); version != kVersion) {
    fail(ErrorCode::checkpoint, "[contract] {}: expected version {}, found {}; a newer foresay wrote it", file.where(),
        kVersion, version);
  }
  const auto contract = file.maybe_object("contract");
  if (!contract) return;
  static const std::set<std::string> kKnown = {
      "base_hidden", "recycled_hidden", "concat_order", "position_mode", "head_norms", "head_packing"};
  for (const auto& [key, value] : contract->json().items()) {
    if (kKnown.contains(key)) continue;
    fail(ErrorCode::checkpoint,
        "[contract] {}: {}: expected base_hidden, recycled_hidden, concat_order, position_mode, head_norms or "
        "head_packing, found this key; correct the file",
        contract->where(), key);
  }
  take(stated.base_hidden, *contract, {"base_hidden"});
  take(stated.recycled_hidden, *contract, {"recycled_hidden"});
  take(stated.concat_order, *contract, {"concat_order"});
  take(stated.position_mode, *contract, {"position_mode"});
  take(stated.head_norms, *contract, {"head_norms"});
  take(stated.head_packing, *contract, {"head_packing"});
}

/// The contract object that mtplx writes, wherever it stands.
void take_mtplx(StatedContract& stated, const Config& contract) {
  take(stated.base_hidden, contract, {"base_hidden_variant"});
  take(stated.recycled_hidden, contract, {"hidden_variant", "mtp_hidden_variant"});
  take(stated.concat_order, contract, {"concat_order"});
  take(stated.position_mode, contract, {"mtp_position_mode", "position_mode"});
  const auto bits = contract.maybe_integer("mtp_quant_bits", 1, 8);
  const int group = contract.maybe_integer("mtp_quant_group_size", 1, 1 << 16).value_or(64);
  const auto policy = contract.maybe_string("mtp_quant_policy");
  if (policy && *policy != "all" && *policy != "cyankiwi" && *policy != "prequantized-int4") {
    fail(ErrorCode::checkpoint,
        "[contract] {}: mtp_quant_policy: expected all, cyankiwi or prequantized-int4, found \"{}\"; correct the file",
        contract.where(), *policy);
  }
  if (!bits || contract.maybe_boolean("mtp_prequantized").value_or(false)) return;
  auto packing = contract_value<HeadPacking>(fmt::format("{}:{}", *bits, group));
  if (!packing) {
    fail(ErrorCode::checkpoint,
        "[contract] {}: mtp_quant_bits: expected 2, 3, 4, 5, 6 or 8 in groups of 32, 64 or 128, found {} in groups of "
        "{}; correct the file",
        contract.where(), *bits, group);
  }
  packing->all = policy == "all";
  if (!stated.head_packing) {
    stated.head_packing = Decided<HeadPacking>{*packing, fmt::format("{}: mtp_quant_bits", contract.where())};
  }
}

template <typename T>
void insist(std::optional<Decided<T>>& decided, const std::optional<T>& value) {
  if (value) decided = Decided<T>{*value, "asked for"};
}

}  // namespace

StatedContract read_stated_contract(const Checkpoint& checkpoint, const ContractOverrides& overrides) {
  StatedContract stated;
  insist(stated.base_hidden, overrides.base_hidden);
  insist(stated.recycled_hidden, overrides.recycled_hidden);
  insist(stated.concat_order, overrides.concat_order);
  insist(stated.position_mode, overrides.position_mode);
  insist(stated.head_norms, overrides.head_norms);
  insist(stated.head_packing, overrides.head_packing);
  take_own(stated, checkpoint.folder() / kOwnFile);
  if (const auto path = checkpoint.folder() / "mtplx_runtime.json"; std::filesystem::exists(path)) {
    const Config runtime = Config::read(path);
    take_mtplx(stated, runtime.maybe_object("mtp_contract").value_or(runtime));
  }
  if (const auto contract = checkpoint.config().maybe_object("mtplx_mtp_contract")) {
    take_mtplx(stated, *contract);
  }
  return stated;
}

void write_contract(const std::filesystem::path& folder, const Contract& contract) {
  const std::filesystem::path path = folder / kOwnFile;
  nlohmann::ordered_json file = nlohmann::ordered_json::object();
  if (std::filesystem::exists(path)) file = Config::read(path).json();
  file["foresay"] = kVersion;
  file["contract"] = {{"base_hidden", name_of(contract.base_hidden.value)},
      {"recycled_hidden", name_of(contract.recycled_hidden.value)},
      {"concat_order", name_of(contract.concat_order.value)}, {"position_mode", name_of(contract.position_mode.value)},
      {"head_norms", name_of(contract.head_norms.value)}, {"head_packing", name_of(contract.head_packing.value)}};
  const std::string text = file.dump(2) + "\n";
  TemporaryFile out(path, "contract");
  out.write(text.data(), text.size());
  out.publish();
}

}  // namespace foresay
