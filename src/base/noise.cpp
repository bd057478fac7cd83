#include "base/noise.h"

#include <cmath>
#include <cstddef>

namespace foresay {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  constexpr std::uint64_t kM0 = 0xD2511F53u, kM1 = 0xCD9E8D57u;
  constexpr std::uint32_t kW0 = 0x9E3779B9u, kW1 = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kM0 * c[0], p1 = kM1 * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
    k[0] += kW0;
    k[1] += kW1;
  }
  return c;
}

std::array<double, 4> KeyedNoise::uniforms(std::uint32_t index, Purpose purpose, std::uint32_t block) const {
  const PhiloxInputs in = inputs(index, purpose);
  const auto words = philox({block, in.index, in.purpose, in.choice}, in.key);
  std::array<double, 4> u;
  for (std::size_t i = 0; i < 4; ++i) u[i] = (static_cast<double>(words[i]) + 0.5) * 0x1p-32;
  return u;
}

double KeyedNoise::uniform(std::uint32_t index, Purpose purpose, TokenId token) const {
  const auto id = static_cast<std::uint32_t>(token);
  return uniforms(index, purpose, id / 4)[id % 4];
}

double KeyedNoise::gumbel(std::uint32_t index, Purpose purpose, TokenId token) const {
  return -std::log(-std::log(uniform(index, purpose, token)));
}

}  // namespace foresay
