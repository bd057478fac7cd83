#include "model/load.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "checkpoint/quantisation.h"
#include "model/registry.h"

namespace foresay {
namespace {

const Family& find_family(const std::string& model_type) {
  std::string known;
  for (const Family& family : families()) {
    if (family.model_type == model_type) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.model_type);
  }
  fail(ErrorCode::unsupported, "[load] config.json: model_type \"{}\" is not supported; expected one of: {}",
      model_type, known);
}

}  // namespace

std::string_view name_of(MtpMode mode) {
  switch (mode) {
    case MtpMode::on:
      return "on";
    case MtpMode::automatic:
      return "auto";
    case MtpMode::off:
      return "off";
    case MtpMode::required:
      return "required";
  }
  return "?";
}

double LoadedModel::bytes_per_token() const {
  return std::accumulate(storage.begin(), storage.end(), 0.0,
      [](double sum, const StorageEntry& e) { return sum + e.read.token * static_cast<double>(e.bytes); });
}

double LoadedModel::bytes_per_draft() const {
  return std::accumulate(storage.begin(), storage.end(), 0.0,
      [](double sum, const StorageEntry& e) { return sum + e.read.draft * static_cast<double>(e.bytes); });
}

LoadedModel load_model(const Checkpoint& checkpoint, Ops& ops, const LoadOptions& options, Report& report) {
  const Family& family = find_family(checkpoint.config().string("model_type"));
  refuse_vendor_formats(checkpoint.config());
  LoadedModel loaded;
  HeadTensors& head = loaded.head = checkpoint.head();
  if (head.tensors.empty() && head.problem.empty() && family.head_in_trunk != nullptr) {
    head = family.head_in_trunk(checkpoint);
  }
  const bool present = !head.tensors.empty() || !head.problem.empty();
  std::string problem = head.problem;
  StatedContract stated;
  if (options.mtp != MtpMode::off && present && problem.empty()) {
    try {
      stated = read_stated_contract(checkpoint, options.contract);
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  const bool want_head = options.mtp != MtpMode::off && present && problem.empty();
  FamilyResult result =
      family.load({family.family, checkpoint, ops, options.contract, stated, head, want_head, report, loaded.storage});
  loaded.model = std::move(result.model);
  if (problem.empty()) problem = result.head_problem;

  if (options.mtp == MtpMode::off) {
    loaded.mtp_reason = "switched off";
  } else if (!present) {
    loaded.mtp_reason = "the checkpoint has no MTP head";
    if (options.mtp == MtpMode::required) {
      fail(ErrorCode::mtp_required,
          "[load] {}: --mtp required, but no MTP tensors were found (mtp.*, mtp/weights.safetensors, "
          "mtp.safetensors, model-mtp.safetensors, model-mtp-head.safetensors, *.mtp.safetensors); use a checkpoint "
          "that kept its head, or --mtp "
          "auto",
          checkpoint.folder().string());
    }
    report.warn(
        fmt::format("{}: no MTP head found; running plain autoregressive decoding", checkpoint.folder().string()));
  } else if (!problem.empty()) {
    loaded.mtp_reason = problem;
    if (options.mtp == MtpMode::automatic) {
      report.warn(fmt::format("the MTP head cannot be used: {}; running plain autoregressive decoding", problem));
    } else {
      fail(options.mtp == MtpMode::required ? ErrorCode::mtp_required : ErrorCode::checkpoint,
          "[load] the MTP head in {} cannot be used: {}; mend the file, or run with --mtp auto or --mtp off",
          head.found_in, problem);
    }
  } else {
    loaded.mtp_reason = "head found in " + head.found_in;
  }
  return loaded;
}

}  // namespace foresay
