#include "base/cpu_features.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

#include "base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace foresay {
namespace {

#if defined(__x86_64__)
// By CPUID, where a compiler does not know the name: GCC 12 that of AVX-VNNI, clang 14 that of F16C.
bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 29 & 1) != 0;
}
#elif defined(__aarch64__) && defined(__APPLE__)
bool has(const char* feature) {
  int value = 0;
  std::size_t size = sizeof value;
  return sysctlbyname(feature, &value, &size, nullptr, 0) == 0 && value != 0;
}
#endif

std::vector<Isa> detect() {
  std::vector<Isa> found = {Isa::reference};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") && has_f16c()) {
    found.push_back(Isa::avx2);
    if (has_avx_vnni()) found.push_back(Isa::avx_vnni);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")) {
      found.push_back(Isa::avx512);
    }
  }
#elif defined(__aarch64__) && defined(__linux__)
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) {
    found.push_back(Isa::neon);
    if ((getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0) found.push_back(Isa::neon_i8mm);
  }
#elif defined(__aarch64__) && defined(__APPLE__)
  if (has("hw.optional.arm.FEAT_DotProd")) {
    found.push_back(Isa::neon);
    if (has("hw.optional.arm.FEAT_I8MM")) found.push_back(Isa::neon_i8mm);
  }
#endif
  return found;
}

Isa named(std::string_view name) {
  const auto& isas = available_isas();
  const auto at = std::ranges::find(isas, name, [](Isa isa) { return name_of(isa); });
  if (at != isas.end()) return *at;
  std::string names;
  for (const Isa isa : isas) names += (names.empty() ? "" : ", ") + std::string(name_of(isa));
  fail(ErrorCode::usage, "instruction set (FORESAY_ISA, --isa): expected one that this machine has ({}), found \"{}\"",
      names, name);
}

Isa initial() {
  const char* asked = std::getenv("FORESAY_ISA");
  return asked != nullptr && *asked != '\0' ? named(asked) : available_isas().back();
}

std::atomic<Isa>& chosen() {
  static std::atomic<Isa> isa{initial()};
  return isa;
}

}  // namespace

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::reference:
      return "reference";
    case Isa::avx2:
      return "avx2";
    case Isa::avx_vnni:
      return "avx_vnni";
    case Isa::avx512:
      return "avx512";
    case Isa::neon:
      return "neon";
    case Isa::neon_i8mm:
      return "neon_i8mm";
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
  (void)named(name_of(isa));
  chosen() = isa;
}

void use_isa(std::string_view name) {
  chosen() = named(name);
}

}  // namespace foresay
