#include "library/open_model.h"

namespace foresay {

OpenModel::OpenModel(const OpenOptions& options, Report& report)
    : checkpoint(Checkpoint::open(options.folder, report)),
      ops(make_cpu_ops(options.threads)),
      loaded(load_model(checkpoint, *ops, {.mtp = options.mtp, .contract = options.contract}, report)) {}

}  // namespace foresay
