// model/head_packing.h: a head's matrix in another form than the file's.
#pragma once

#include "checkpoint/quantisation.h"
#include "model/contract.h"

namespace foresay {

/// The matrix as `packing` wants it, in memory of its own; the same where nothing is to be done: it is packed already,
/// or its inputs are no multiple of the group. Quantised scales are bf16 for a bf16 matrix and float32 else.
[[nodiscard]] StoredMatrix repacked(const StoredMatrix& stored, const HeadPacking& packing);

}  // namespace foresay
