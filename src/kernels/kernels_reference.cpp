// The kernels in plain C++: the definition of correct, and what runs where no other set does.
#include "kernels/kernel_headers.h"

#define FORESAY_LANES reference
#define FORESAY_INT8_TILE "kernels/int8_tile_reference.h"
#define FORESAY_LANES_HEADER "kernels/lanes_reference.h"
#include "kernels/kernel_table_body.h"

namespace foresay::kernels {
const KernelTable kReference = reference::kTable;
}
