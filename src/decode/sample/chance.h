// decode/sample/chance.h: the random choices of decoding, behind an interface so that tests can enumerate them.
#pragma once

#include <cstdint>

#include "base/noise.h"
#include "decode/sample/distribution.h"

namespace foresay {

/// Makes the random choices of one sequence. `index` is the 0-based position among generated tokens.
class Chance {
 public:
  virtual ~Chance() = default;
  /// A token drawn from d for the given purpose. A distribution with one id is that id without a draw.
  [[nodiscard]] virtual TokenId draw(const Distribution& d, std::uint32_t index, Purpose purpose) = 0;
  /// True with the given probability; strict u < probability, so 0 never happens and 1 always does. Asked twice for one
  /// index and purpose it answers alike.
  [[nodiscard]] virtual bool happens(double probability, std::uint32_t index, Purpose purpose) = 0;
};

/// Chance from keyed noise. Draws are Gumbel-max: argmax of ln p + g(key, id), the lowest id among equals; ids that
/// cannot win under the bounded noise are not drawn for.
class KeyedChance : public Chance {
 public:
  explicit KeyedChance(KeyedNoise noise) : noise_(noise) {}
  [[nodiscard]] TokenId draw(const Distribution& d, std::uint32_t index, Purpose purpose) override;
  [[nodiscard]] bool happens(double probability, std::uint32_t index, Purpose purpose) override;

 private:
  KeyedNoise noise_;
};

}  // namespace foresay
