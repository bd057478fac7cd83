// The kernels for AVX-512 with VNNI.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "kernels/elements.h"
#include "kernels/kernel_table.h"

// Only what follows is compiled for the set: standard headers came before, so none of their functions is.
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
#include "kernels/lanes_avx512.h"

namespace foresay::kernels {
namespace avx512 {
constexpr int kTileRows = 4;  // rows of x that linear() keeps in registers beside four weight rows
}
}  // namespace foresay::kernels

#include "kernels/kernel_table_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif

namespace foresay::kernels {
const KernelTable kAvx512 = avx512::kTable;
}
#endif
