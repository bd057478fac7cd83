// model/registry.h: the table of model families.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "model/contract_sources.h"
#include "model/load.h"

namespace foresay {

/// What a family's loader is given. It fills `storage`, and `head_problem` when the head cannot be used.
struct FamilyRequest {
  std::string_view family;  ///< of the table's row
  const Checkpoint& checkpoint;
  Ops& ops;
  const ContractOverrides& overrides;
  const StatedContract& stated;  ///< by anyone, the caller included
  const HeadTensors& head;       ///< what was found of one
  bool want_head;                ///< false: load the trunk alone
  Report& report;
  std::vector<StorageEntry>& storage;
};

struct FamilyResult {
  std::unique_ptr<Model> model;
  std::string head_problem;  ///< why a head that is present is not used; empty when all is well or there is none
};

struct Family {
  std::string_view model_type;  ///< as in config.json
  std::string_view family;
  FamilyResult (*load)(const FamilyRequest& request);
  /// A head that lies under names of the trunk, where the checkpoint has none under names of its own; null where the
  /// family has no such names. Without tensors where there is none.
  HeadTensors (*head_in_trunk)(const Checkpoint& checkpoint) = nullptr;
};

/// One line per model_type. A new family is one file in families/ and one line here.
[[nodiscard]] std::span<const Family> families();

/// Runs `attach`, which loads a head. A failure leaves the trunk runnable: it is returned in words, and what the
/// attempt put into request.storage is taken back.
[[nodiscard]] std::string try_head(const FamilyRequest& request, const std::function<void()>& attach);

FamilyResult load_qwen3_5(const FamilyRequest& request);
FamilyResult load_step3p5(const FamilyRequest& request);
[[nodiscard]] HeadTensors step3p5_head_in_trunk(const Checkpoint& checkpoint);

}  // namespace foresay
