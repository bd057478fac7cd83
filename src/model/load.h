// model/load.h: checkpoint folder -> model, with the head as asked for.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/report.h"
#include "checkpoint/checkpoint.h"
#include "model/model.h"

namespace foresay {

/// What to do about the head. `on`: a head that is present but unusable is an error. `automatic`: it is a warning.
/// `required`: any lack is an error (exit 5). `off`: the head is not looked at.
enum class MtpMode { on, automatic, off, required };

[[nodiscard]] std::string_view name_of(MtpMode mode);

struct LoadOptions {
  MtpMode mtp = MtpMode::on;
  ContractOverrides contract;
};

/// Which share of a matrix is read: of experts those that are chosen, of an embedding that is only looked up nothing.
struct ReadShare {
  double token = 1;  ///< by the trunk, for one token
  double draft = 0;  ///< by one draft step

  [[nodiscard]] ReadShare operator*(double share) const { return {token * share, draft * share}; }
};

/// How one matrix or group of matrices is stored, and how much of it is read.
struct StorageEntry {
  std::string module;  ///< full path in the checkpoint
  std::string format;  ///< "BF16", "affine 4 bits, group 64"
  std::size_t bytes = 0;
  ReadShare read;
};

struct LoadedModel {
  std::unique_ptr<Model> model;
  std::string mtp_reason;             ///< why the head is there or not, in words
  HeadTensors head;                   ///< what was found of one
  std::vector<StorageEntry> storage;  ///< every matrix, trunk first

  [[nodiscard]] double bytes_per_token() const;  ///< weights that the trunk reads for one token, drafts aside
  [[nodiscard]] double bytes_per_draft() const;  ///< weights that one draft step reads
};

/// Builds the model that config.json's model_type names. Every parameter has a stated source or the load fails; every
/// decision goes into `report`. Throws ErrorCode::unsupported for an unknown architecture, ErrorCode::checkpoint for a
/// damaged one, ErrorCode::mtp_required as LoadOptions says. `ops` must outlive the model.
[[nodiscard]] LoadedModel load_model(
    const Checkpoint& checkpoint, Ops& ops, const LoadOptions& options, Report& report);

}  // namespace foresay
