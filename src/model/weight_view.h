// model/weight_view.h: a stored matrix as kernels see it.
#pragma once

#include "checkpoint/quantisation.h"
#include "kernels/unpack_row.h"

namespace foresay {

/// Points into the matrix's bytes. Throws ErrorCode::unsupported for values that are not f32, f16 or bf16.
[[nodiscard]] WeightView weight_view(const StoredMatrix& stored);

}  // namespace foresay
