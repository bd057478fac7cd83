// base/cpu_features.h: which instruction sets this machine runs.
#pragma once

#include <string_view>
#include <vector>

namespace foresay {

/// Instruction sets that kernels are written for. `reference` is plain C++ and runs everywhere.
enum class Isa {
  reference,
  avx2,      ///< x86-64 with AVX2, FMA, F16C, BMI2 (2013 on)
  avx_vnni,  ///< avx2 and 256-bit VNNI: client processors from 2021 on
  avx512,    ///< AVX-512 F, BW, DQ, VL and VNNI: servers from 2019 on, Zen 4 on
  neon,      ///< 64-bit Arm with the int8 dot product
  neon_i8mm  ///< and the int8 matrix product
};

[[nodiscard]] std::string_view name_of(Isa isa);

/// What this machine runs, weakest first; always begins with `reference`.
[[nodiscard]] const std::vector<Isa>& available_isas();

/// The set that kernels use: the strongest available, or what use_isa() or the environment variable FORESAY_ISA chose
/// (by name_of()). Throws ErrorCode::usage when that names a set which this machine lacks.
[[nodiscard]] Isa current_isa();

/// Chooses a set for tests and measurements. Throws ErrorCode::usage when this machine lacks it. Call while no kernel
/// runs.
void use_isa(Isa isa);
void use_isa(std::string_view name);

}  // namespace foresay
