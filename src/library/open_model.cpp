#include "library/open_model.h"

#include "base/error.h"
#include "library/probe.h"

namespace foresay {

MtpMode mtp_mode(std::string_view name) {
  for (const MtpMode mode : {MtpMode::on, MtpMode::automatic, MtpMode::off, MtpMode::required}) {
    if (name_of(mode) == name) return mode;
  }
  fail(ErrorCode::usage, "--mtp: expected on, auto, off or required, found {}", name);
}

OpenModel::OpenModel(const OpenOptions& options, Report& report)
    : ops(make_ops(options.lane, report)),
      checkpoint(Checkpoint::open(options.folder, report)),
      loaded(load_model(checkpoint, *ops, {.mtp = options.mtp, .contract = options.contract}, report)) {
  if (!has_head()) return;
  if (const std::string warning = kept_probe_warning(checkpoint, model()); !warning.empty()) report.warn(warning);
}

}  // namespace foresay
