// decode/sample/scan.h: walks over a row of logits, vectorised; the only code that visits every id of a vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/noise.h"

namespace foresay {

/// What one look at a row tells.
struct Survey {
  std::size_t peak = 0;   ///< column of the highest value, the lowest among equals; only where all are usable
  bool is_usable = true;  ///< no NaN and no +inf
};
[[nodiscard]] Survey survey(std::span<const float> row);

/// The sum of e^((x - peak) * scale) over a row without NaN, peak its highest value. 16 interleaved sums, column i in
/// sum i mod 16, added pairwise 8, 4, 2, 1 apart. Terms below e^-708 count as e^-708, far below a rounding of the sum.
[[nodiscard]] double sum_exp(std::span<const float> row, double peak, double scale);

/// Columns of a row that passed a test: first + i for every bit i of `mask`. Without a bit the row has ended.
struct Hits {
  std::size_t first = 0;
  std::uint64_t mask = 0;
};
inline constexpr std::size_t kHitGroup = 64;  ///< columns that one Hits covers; the next begin at first + kHitGroup

/// The first group at or behind column `from`, a multiple of kHitGroup, with values above `border`: exactly those.
[[nodiscard]] Hits next_above(std::span<const float> row, std::size_t from, float border);

/// A draw by Gumbel-max on its way: which columns can still win is bounded by the score so far.
struct Contest {
  PhiloxInputs noise;
  float peak = 0;   ///< highest value of the row
  float scale = 0;  ///< log2(e) / temperature
  float bias = 0;   ///< 2^z with z = (x - peak) * scale + bias: the uniforms that win, in units of 2^-31, over 2^127
};
/// The contest of a row once `best` is the best score so far, relative to the peak: (x - peak) / temperature + gumbel.
/// Bounds hold for temperatures up to 1e6 and peaks within 1e30; -inf for `best` lets every column pass.
[[nodiscard]] Contest contest(const PhiloxInputs& noise, float peak, double temperature, double best);

/// The first group at or behind column `from`, a multiple of kHitGroup, with columns that may score as much as `best`:
/// all that do, and some that do not. Column i is token id i, as far as noise is concerned.
[[nodiscard]] Hits next_contenders(std::span<const float> row, std::size_t from, const Contest& contest);

}  // namespace foresay
