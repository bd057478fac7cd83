#include "model/head_packing.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "checkpoint/quantise_affine.h"
#include "kernels/unpack_row.h"
#include "model/weight_view.h"

namespace foresay {
namespace {

/// To nearest, ties to even; NaN stays NaN.
std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 64);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <typename T>
TensorView owned(const TensorView& like, DType type, std::vector<std::int64_t> shape, std::vector<T> values) {
  auto memory = std::make_shared<std::vector<T>>(std::move(values));
  TensorView view = like;
  view.dtype = type;
  view.shape = std::move(shape);
  view.data = reinterpret_cast<const std::byte*>(memory->data());
  view.bytes = memory->size() * sizeof(T);
  view.owner = std::move(memory);
  return view;
}

/// Values as bf16 or float32.
TensorView floats(const TensorView& like, DType type, std::vector<std::int64_t> shape, std::span<const float> values) {
  if (type != DType::bf16) return owned(like, DType::f32, std::move(shape), std::vector(values.begin(), values.end()));
  std::vector<std::uint16_t> halves;
  halves.reserve(values.size());
  for (const float value : values) halves.push_back(to_bf16(value));
  return owned(like, DType::bf16, std::move(shape), std::move(halves));
}

}  // namespace

StoredMatrix repacked(const StoredMatrix& stored, const HeadPacking& packing) {
  const bool unpack = packing.form == HeadPacking::Form::bf16 && stored.quant;
  const bool pack = packing.form == HeadPacking::Form::affine && !stored.quant && stored.in % packing.group == 0;
  if (!unpack && !pack) return stored;
  std::vector<float> values(static_cast<std::size_t>(stored.out) * static_cast<std::size_t>(stored.in));
  const WeightView view = weight_view(stored);
  for (int n = 0; n < stored.out; ++n) {
    unpack_row(view, n, values.data() + static_cast<std::size_t>(n) * static_cast<std::size_t>(stored.in));
  }
  StoredMatrix result;
  result.module = stored.module;
  result.out = stored.out;
  result.in = stored.in;
  result.decides = stored.decides;
  if (unpack) {
    result.weight = floats(stored.weight, DType::bf16, {stored.out, stored.in}, values);
    return result;
  }
  AffineCodes codes = quantise_affine(values, stored.out, stored.in, packing.bits, packing.group);
  const std::vector<std::int64_t> groups = {stored.out, stored.in / packing.group};
  result.quant = QuantGeometry{.mode = QuantMode::affine, .bits = packing.bits, .group = packing.group};
  result.weight = owned(stored.weight, DType::u32,
      {stored.out, static_cast<std::int64_t>(stored.in) * packing.bits / 32}, std::move(codes.words));
  result.scales = floats(stored.weight, stored.weight.dtype, groups, codes.scales);
  result.biases = floats(stored.weight, stored.weight.dtype, groups, codes.biases);
  return result;
}

}  // namespace foresay
