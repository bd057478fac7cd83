// The kernels for AVX2 with 256-bit VNNI.
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
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2,avxvnni"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,bmi2,avxvnni")
#endif
#define FORESAY_VNNI
#define FORESAY_LANES avx_vnni
#define FORESAY_INT8_TILE "kernels/int8_tile_avx2.h"
#include "kernels/lanes_avx2.h"

namespace foresay::kernels {
namespace avx_vnni {
constexpr int kTileRows = 1;  // rows of x that linear() keeps in registers beside four weight rows
}
}  // namespace foresay::kernels

#include "kernels/kernel_table_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif

namespace foresay::kernels {
const KernelTable kAvxVnni = avx_vnni::kTable;
}
#endif
