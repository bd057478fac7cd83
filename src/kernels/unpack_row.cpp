#include "kernels/unpack_row.h"

#include "base/cpu_features.h"
#include "kernels/unpack_row_variants.h"

namespace foresay {

void unpack_row(const WeightView& w, int n, float* row) {
#if defined(__x86_64__)
  if (current_isa() == Isa::avx2) return kernels::unpack_row_avx2(w, n, row);
#endif
  kernels::unpack_row_reference(w, n, row);
}

}  // namespace foresay
