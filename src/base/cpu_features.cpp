#include "base/cpu_features.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"

namespace foresay {
namespace {

std::vector<Isa> detect() {
  std::vector<Isa> found = {Isa::reference};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) found.push_back(Isa::avx2);
#endif
  return found;
}

std::atomic<Isa>& chosen() {
  static std::atomic<Isa> isa{available_isas().back()};
  return isa;
}

}  // namespace

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::reference:
      return "reference";
    case Isa::avx2:
      return "avx2";
  }
  return "?";
}

const std::vector<Isa>& available_isas() {
  static const std::vector<Isa> isas = detect();
  return isas;
}

Isa current_isa() {
  return chosen().load(std::memory_order_relaxed);
}

void use_isa(Isa isa) {
  const auto& isas = available_isas();
  if (std::find(isas.begin(), isas.end(), isa) == isas.end()) {
    fail(ErrorCode::usage, "[cpu] this machine has no {}", name_of(isa));
  }
  chosen() = isa;
}

}  // namespace foresay
