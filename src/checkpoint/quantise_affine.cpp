#include "checkpoint/quantise_affine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace foresay {
namespace {

struct GroupScale {
  float scale = 0, bias = 0;
};

/// The end of the range that is larger in magnitude is hit exactly, and zero is representable.
GroupScale scale_of(std::span<const float> group, float levels) {
  const auto [low, high] = std::minmax_element(group.begin(), group.end());
  GroupScale result{std::max((*high - *low) / levels, 1e-7f), 0.0f};
  float edge = *low;
  if (std::fabs(*low) <= std::fabs(*high)) {
    result.scale = -result.scale;
    edge = *high;
  }
  const float code = std::nearbyint(edge / result.scale);
  if (code != 0.0f) {
    result.scale = edge / code;
    result.bias = edge;
  }
  return result;
}

}  // namespace

AffineCodes quantise_affine(std::span<const float> values, std::int64_t out, std::int64_t in, int bits, int group) {
  if (in % group != 0 || in * bits % 32 != 0 || static_cast<std::int64_t>(values.size()) != out * in) {
    fail(ErrorCode::internal, "[quantisation] {} values are no matrix [{}, {}] in groups of {}", values.size(), out, in,
        group);
  }
  const auto n_groups = in / group;
  const auto words_per_row = in * bits / 32;
  const auto levels = static_cast<float>((1 << bits) - 1);
  std::vector<std::uint32_t> words(static_cast<std::size_t>(out * words_per_row), 0);
  std::vector<float> scales, biases;
  for (std::int64_t row = 0; row < out; ++row) {
    for (std::int64_t g = 0; g < n_groups; ++g) {
      const auto run = values.subspan(static_cast<std::size_t>(row * in + g * group), static_cast<std::size_t>(group));
      const auto [scale, bias] = scale_of(run, levels);
      scales.push_back(scale);
      biases.push_back(bias);
      for (std::int64_t i = 0; i < group; ++i) {
        const float code = std::clamp(std::nearbyint((run[static_cast<std::size_t>(i)] - bias) / scale), 0.0f, levels);
        const auto bit = (g * group + i) * bits;  // of the row's stream, low bit of the first word first
        const auto word = static_cast<std::size_t>(row * words_per_row + bit / 32);
        const auto shifted = static_cast<std::uint64_t>(code) << (bit % 32);
        words[word] |= static_cast<std::uint32_t>(shifted);
        if ((shifted >> 32) != 0) words[word + 1] |= static_cast<std::uint32_t>(shifted >> 32);
      }
    }
  }
  return {std::move(words), std::move(scales), std::move(biases)};
}

}  // namespace foresay
