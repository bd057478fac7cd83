// The kernels in plain C++: the definition of correct, and what runs where no other set does.
#include <cstring>

#include "kernels/elements.h"
#include "kernels/kernel_table.h"

#define FORESAY_LANES reference
#define FORESAY_INT8_TILE "kernels/int8_tile_reference.h"
#include "kernels/lanes_reference.h"

namespace foresay::kernels {
namespace reference {
constexpr int kTileRows = 2;
}
}  // namespace foresay::kernels

#include "kernels/kernel_table_body.h"

namespace foresay::kernels {
const KernelTable kReference = reference::kTable;
}
