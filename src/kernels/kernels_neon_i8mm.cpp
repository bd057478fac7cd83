// The kernels for 64-bit Arm with the int8 matrix product.
#if defined(__aarch64__)
#include <arm_neon.h>

#include "kernels/kernel_headers.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod,i8mm"))), apply_to = function)
#else
#pragma GCC target("arch=armv8.2-a+dotprod+i8mm")
#endif
#define FORESAY_I8MM
#define FORESAY_LANES neon_i8mm
#define FORESAY_INT8_TILE "kernels/int8_tile_neon.h"
#define FORESAY_LANES_HEADER "kernels/lanes_neon.h"
#include "kernels/kernel_table_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif

namespace foresay::kernels {
const KernelTable kNeonI8mm = neon_i8mm::kTable;
}
#endif
