// base/noise.h: counter-based random numbers, a pure function of a key.
#pragma once

#include <array>
#include <cstdint>

#include "foresay/token.h"

namespace foresay {

/// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): four words from a counter and a
/// key.
[[nodiscard]] std::array<std::uint32_t, 4> philox(
    std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// What Philox is given beside word 0 of its counter: the words of many counters are then one loop
/// (decode/sample/scan).
struct PhiloxInputs {
  std::array<std::uint32_t, 2> key{};
  std::uint32_t index = 0, purpose = 0, choice = 0;  ///< words 1, 2, 3 of the counter
};

/// What a random number is for. Under coupled acceptance draft and target share `draw`. Under ratio acceptance a draft
/// token is a `draft`, its survival an `accept`, and the correction or bonus token at its position a `residual`: no two
/// share a key. `xtc` is the coin of a position, the same for draft and target.
enum class Purpose : std::uint32_t { draw = 0, draft = 1, accept = 2, residual = 3, xtc = 4 };

/// Random numbers of one generated sequence, keyed by (seed, choice, generated index, purpose, token id).
/// The same key gives the same number in any order, on any thread, at any depth: nothing is consumed.
class KeyedNoise {
 public:
  explicit KeyedNoise(std::uint64_t seed = 0, std::uint32_t choice = 0) : seed_(seed), choice_(choice) {}

  /// Uniform in the open interval (0, 1), 32 bits fine: (word + 0.5) / 2^32. Four neighbouring tokens share one Philox
  /// block.
  ///   index  0-based position among the generated tokens
  [[nodiscard]] double uniform(std::uint32_t index, Purpose purpose, TokenId token = 0) const;

  /// uniform() of tokens 4 * block .. 4 * block + 3, for the cost of one.
  [[nodiscard]] std::array<double, 4> uniforms(std::uint32_t index, Purpose purpose, std::uint32_t block) const;

  /// What the words of every block are made of; word w is the uniform (w + 0.5) / 2^32.
  [[nodiscard]] PhiloxInputs inputs(std::uint32_t index, Purpose purpose) const {
    return {{static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)}, index,
        static_cast<std::uint32_t>(purpose), choice_};
  }

  /// Standard Gumbel, -ln(-ln(u)), of the same key; always within [kGumbelMin, kGumbelMax].
  [[nodiscard]] double gumbel(std::uint32_t index, Purpose purpose, TokenId token) const;

  static constexpr double kGumbelMin = -3.2;  ///< below -ln(-ln(0.5 / 2^32)) = -3.1347
  static constexpr double kGumbelMax = 22.9;  ///< above -ln(-ln(1 - 0.5 / 2^32)) = 22.8739

  [[nodiscard]] std::uint64_t seed() const { return seed_; }

 private:
  std::uint64_t seed_;
  std::uint32_t choice_;
};

}  // namespace foresay
