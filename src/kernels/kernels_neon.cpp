// The kernels for 64-bit Arm with the int8 dot product.
#if defined(__aarch64__)
#include <arm_neon.h>

#include "kernels/kernel_headers.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod"))), apply_to = function)
#else
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif
#define FORESAY_LANES neon
#define FORESAY_INT8_TILE "kernels/int8_tile_neon.h"
#define FORESAY_LANES_HEADER "kernels/lanes_neon.h"
#include "kernels/kernel_table_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif

namespace foresay::kernels {
const KernelTable kNeon = neon::kTable;
}
#endif
