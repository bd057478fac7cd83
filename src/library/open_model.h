// library/open_model.h: a checkpoint folder opened on a lane, with everything that keeps the model alive.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "base/report.h"
#include "checkpoint/checkpoint.h"
#include "library/lane.h"
#include "model/load.h"

namespace foresay {

/// on, auto, off, required. Throws ErrorCode::usage for anything else.
[[nodiscard]] MtpMode mtp_mode(std::string_view name);

struct OpenOptions {
  std::filesystem::path folder;
  MtpMode mtp = MtpMode::on;
  ContractOverrides contract = {};
  LaneOptions lane = {};
};

/// Not movable: members refer to each other. The thread that opens a model is the one that runs it.
struct OpenModel {
  /// Throws as make_ops, Checkpoint::open and load_model do; `report` then still holds what was noticed before.
  OpenModel(const OpenOptions& options, Report& report);
  OpenModel(const OpenModel&) = delete;
  OpenModel& operator=(const OpenModel&) = delete;

  std::unique_ptr<Ops> ops;  ///< first: a lane that cannot be had is refused before any file is read
  Checkpoint checkpoint;
  LoadedModel loaded;

  [[nodiscard]] const Model& model() const { return *loaded.model; }
  [[nodiscard]] bool has_head() const { return model().info().head_layers > 0; }
};

}  // namespace foresay
