// kernels/every_isa.h: kernel tests that run once per instruction set of this machine.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/cpu_features.h"

namespace foresay {

/// Selects the instruction set for one test and the strongest again afterwards.
class EveryIsa : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { use_isa(GetParam()); }
  void TearDown() override { use_isa(available_isas().back()); }

  /// What `run` gives on the reference.
  template <typename Run>
  auto on_reference(Run run) {
    use_isa(Isa::reference);
    auto result = run();
    use_isa(GetParam());
    return result;
  }
};

inline std::string isa_name(const ::testing::TestParamInfo<Isa>& info) {
  return std::string(name_of(info.param));
}

#define FORESAY_EVERY_ISA(suite) \
  INSTANTIATE_TEST_SUITE_P(Kernels, suite, ::testing::ValuesIn(available_isas()), isa_name)

/// Uniform in [-scale, scale), the same on every machine.
inline std::vector<float> random_floats(std::size_t count, std::uint64_t seed, float scale = 1) {
  std::mt19937_64 words(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<std::int32_t>(words())) * 0x1p-31f * scale;
  return values;
}

/// Bit patterns, so that -0, NaN and rounding count.
inline std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

}  // namespace foresay
