// The kernels for AVX2 with 256-bit VNNI.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/kernel_headers.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2,avxvnni"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,bmi2,avxvnni")
#endif
#define FORESAY_VNNI
#define FORESAY_LANES avx_vnni
#define FORESAY_INT8_TILE "kernels/int8_tile_avx2.h"
#define FORESAY_LANES_HEADER "kernels/lanes_avx2.h"
#include "kernels/kernel_table_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif

namespace foresay::kernels {
const KernelTable kAvxVnni = avx_vnni::kTable;
}
#endif
