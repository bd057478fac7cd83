// base/cpu_features.h: which instruction sets this machine runs.
#pragma once

#include <string_view>
#include <vector>

namespace foresay {

/// Instruction sets that kernels are written for, weakest first. `reference` is plain C++ and runs everywhere.
enum class Isa { reference, avx2 };

[[nodiscard]] std::string_view name_of(Isa isa);

/// What this machine runs, weakest first; always begins with `reference`.
[[nodiscard]] const std::vector<Isa>& available_isas();

/// The set that kernels use: the strongest available, or what use_isa() chose.
[[nodiscard]] Isa current_isa();

/// Chooses a set for tests and measurements. Throws ErrorCode::usage when this machine lacks it. Call while no kernel
/// runs.
void use_isa(Isa isa);

}  // namespace foresay
