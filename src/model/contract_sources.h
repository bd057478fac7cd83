// model/contract_sources.h: what a caller and a checkpoint's files say about the wiring of a head, before any weight is
// read.
#pragma once

#include <filesystem>
#include <optional>

#include "checkpoint/checkpoint.h"
#include "model/contract.h"

namespace foresay {

/// Values that somebody stated, each from the strongest source that has it: the caller; foresay.json;
/// mtplx_runtime.json (its mtp_contract, or the same keys at top level); config.json's mtplx_mtp_contract. What is not
/// stated is decided by the family: from its config keys, from tensors, by default.
struct StatedContract {
  std::optional<Decided<HiddenState>> base_hidden;
  std::optional<Decided<RecycledHidden>> recycled_hidden;
  std::optional<Decided<ConcatOrder>> concat_order;
  std::optional<Decided<PositionMode>> position_mode;
  std::optional<Decided<NormEncoding>> head_norms;
  std::optional<Decided<HeadPacking>> head_packing;
};

/// Throws ErrorCode::checkpoint for a value that does not exist, naming file, key, what was expected and what was
/// found; for a key of foresay.json's contract that does not exist; for a foresay.json of another version.
[[nodiscard]] StatedContract read_stated_contract(const Checkpoint& checkpoint, const ContractOverrides& overrides);

/// Writes the head's wiring to foresay.json in the folder, whole or not at all; what else that file holds stays. Throws
/// ErrorCode::capacity where it cannot be written.
void write_contract(const std::filesystem::path& folder, const Contract& contract);

}  // namespace foresay
