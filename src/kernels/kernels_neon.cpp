// The kernels for 64-bit Arm with the int8 dot product.
#if defined(__aarch64__)
#include <arm_neon.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "kernels/elements.h"
#include "kernels/kernel_table.h"

// Only what follows is compiled for the set: standard headers came before, so none of their functions is.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod"))), apply_to = function)
#else
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif
#define FORESAY_LANES neon
#define FORESAY_INT8_TILE "kernels/int8_tile_neon.h"
#include "kernels/lanes_neon.h"

namespace foresay::kernels {
namespace neon {
constexpr int kTileRows = 1;  // rows of x that linear() keeps in registers beside four weight rows
}
}  // namespace foresay::kernels

#include "kernels/kernel_table_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif

namespace foresay::kernels {
const KernelTable kNeon = neon::kTable;
}
#endif
