#include "decode/sample/chance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "base/error.h"

namespace foresay {

TokenId KeyedChance::draw(const Distribution& d, std::uint32_t index, Purpose purpose) {
  if (d.ids.empty()) fail(ErrorCode::internal, "[sample] draw at index {}: the distribution is empty", index);
  if (d.ids.size() == 1) return d.ids.front();

  // The favourite goes first: what it scores is already a high bar.
  const auto favourite = static_cast<std::size_t>(std::ranges::max_element(d.p) - d.p.begin());
  TokenId winner = d.ids[favourite];
  double best = std::log(d.p[favourite]) + noise_.gumbel(index, purpose, winner);

  // ln p - ln(-ln u) > best  <=>  p > e^best (-ln u), and -ln u >= 1 - u >= 2^-33. So an id with p < e^best 2^-33 needs
  // no noise, and one with p < e^best (1 - u) no logarithm. The margin keeps both clear of rounding.
  constexpr double kMargin = 1 - 1e-9;
  double bar = std::exp(best) * kMargin;
  std::uint32_t block = ~std::uint32_t{0};  // no token's: ids are below 2^31
  std::array<double, 4> uniforms{};
  for (std::size_t i = 0; i < d.ids.size(); ++i) {
    if (d.p[i] < bar * 0x1p-33 || i == favourite) continue;
    const TokenId id = d.ids[i];
    const auto counter = static_cast<std::uint32_t>(id);
    if (counter / 4 != block) {
      block = counter / 4;
      uniforms = noise_.uniforms(index, purpose, block);
    }
    if (d.p[i] < bar * (1 - uniforms[counter % 4])) continue;
    const double score = std::log(d.p[i]) + noise_.gumbel(index, purpose, id);
    if (score > best || (score == best && id < winner)) {
      winner = id;
      best = score;
      bar = std::exp(best) * kMargin;
    }
  }
  return winner;
}

bool KeyedChance::happens(double probability, std::uint32_t index, Purpose purpose) {
  return noise_.uniform(index, purpose) < probability;
}

}  // namespace foresay
