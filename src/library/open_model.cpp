#include "library/open_model.h"

namespace foresay {

OpenModel::OpenModel(const OpenOptions& options, Report& report)
    : ops(make_ops(options.lane)),
      checkpoint(Checkpoint::open(options.folder, report)),
      loaded(load_model(checkpoint, *ops, {.mtp = options.mtp, .contract = options.contract}, report)) {}

}  // namespace foresay
