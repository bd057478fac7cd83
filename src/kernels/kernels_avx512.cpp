// The kernels for AVX-512 with VNNI.
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/kernel_headers.h"

#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
#endif
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes the undefined inputs inside its own AVX-512 header for a mistake.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#define FORESAY_LANES avx512
#define FORESAY_INT8_TILE "kernels/int8_tile_avx512.h"
#define FORESAY_LANES_HEADER "kernels/lanes_avx512.h"
#include "kernels/kernel_table_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif

namespace foresay::kernels {
const KernelTable kAvx512 = avx512::kTable;
}
#endif
