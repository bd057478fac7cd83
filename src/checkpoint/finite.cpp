#include "checkpoint/finite.h"

#include <fmt/format.h>

#include <cmath>

namespace foresay {
namespace {

std::optional<std::string> first_bad(const std::map<std::string, TensorView>& tensors) {
  for (const auto& [name, view] : tensors) {
    if (!is_float(view.dtype)) continue;
    const std::vector<float> values = view.to_float();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) return fmt::format("{} in {}: value {} is {}", view.name, view.file, i, values[i]);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_non_finite(const Checkpoint& checkpoint) {
  if (auto bad = first_bad(checkpoint.trunk())) return bad;
  return first_bad(checkpoint.head().tensors);
}

}  // namespace foresay
