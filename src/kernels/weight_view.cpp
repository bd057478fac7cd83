#include <cstddef>

#include "kernels/elements.h"
#include "kernels/unpack_row.h"

namespace foresay {

WeightView rows_of(const WeightView& w, int first, int out) {
  WeightView part = w;
  part.out = out;
  const auto n = static_cast<std::size_t>(first), in = static_cast<std::size_t>(w.in);
  if (is_packed(w.type)) {
    const bool affine = w.type == WeightType::affine;
    const std::size_t groups =
        n * (in / static_cast<std::size_t>(w.group)) * (affine ? kernels::bytes_of(w.scale_type) : 1);
    part.data = kernels::codes_of(w, first);
    part.scales = static_cast<const std::byte*>(w.scales) + groups;
    if (affine) part.biases = static_cast<const std::byte*>(w.biases) + groups;
  } else {
    part.data = static_cast<const std::byte*>(w.data) + n * in * kernels::bytes_of(w.type);
  }
  return part;
}

}  // namespace foresay
