// kernels/linear_int8.h: rows of int8 activations times an affine or mxfp4 matrix. Integers inside a block are exact;
// blocks are added in float32 in a fixed order (docs/numerics.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/linear.h"

namespace foresay {

inline constexpr int kInt8Block = 64;  ///< activations that share a scale
inline constexpr int kInt8Tile = 16;   ///< weight rows that linear_int8() works on together, one per lane

/// The order of the int8 values of a row; a matrix decides it.
enum class Int8Order {
  natural,  ///< for codes of one byte each
  nibbles   ///< for 4-bit codes: of every eight elements the even ones, then the odd ones
};

/// Activations [rows, in] as int8: value = scale * code.
struct Int8Rows {
  Int8Order order = Int8Order::natural;
  int rows = 0, in = 0;
  const std::int8_t* codes = nullptr;  ///< [rows, in]
  const float* scales = nullptr;       ///< [rows, in / 64]
  const float* sums = nullptr;         ///< [rows, int8_sums(in)] of each block: scale * the sum of its codes, of its
                                       ///< first half, of its second half

  [[nodiscard]] Int8Rows part(int first, int count) const;  ///< rows [first, first + count)
};

[[nodiscard]] constexpr std::size_t int8_blocks(int in) {
  return static_cast<std::size_t>(in / kInt8Block);
}
[[nodiscard]] constexpr std::size_t int8_sums(int in) {
  return 3 * int8_blocks(in);
}

inline Int8Rows Int8Rows::part(int first, int count) const {
  const auto at = static_cast<std::size_t>(first);
  return {order, count, in, codes + at * static_cast<std::size_t>(in), scales + at * int8_blocks(in),
      sums + at * int8_sums(in)};
}

/// Whether linear_int8() takes the matrix: affine or mxfp4, and `in` a multiple of 64.
[[nodiscard]] constexpr bool takes_int8(const WeightView& w) {
  return (w.type == WeightType::affine || w.type == WeightType::mxfp4) && w.in % kInt8Block == 0;
}
/// Whether codes are multiplied as they lie in the file; else a row is unpacked to bytes first.
[[nodiscard]] constexpr bool has_int8_loop(const WeightView& w) {
  return w.type == WeightType::affine && (w.bits == 4 || w.bits == 8);
}
[[nodiscard]] constexpr Int8Order int8_order(const WeightView& w) {
  return has_int8_loop(w) && w.bits == 4 ? Int8Order::nibbles : Int8Order::natural;
}

/// Rounds one row [in] to nearest even, per block: scale = max |x| / 127. A block that holds NaN or an infinity gets
/// the scale NaN, so that its outputs show it.
void quantise_row(const float* x, int in, Int8Order order, std::int8_t* codes, float* scales, float* sums);

/// Floats for a tile's scales, or its offsets: groups are padded to 16.
[[nodiscard]] constexpr std::size_t int8_tile_scales(const WeightView& w) {
  return (static_cast<std::size_t>(w.in / w.group) + 15) / 16 * 16 * kInt8Tile;
}
/// Bytes of a tile of weights whose scales, offsets and codes lie side by side; behind them its codes one row after
/// another, where those had to be unpacked.
[[nodiscard]] constexpr std::size_t int8_tile_bytes(const WeightView& w) {
  const auto in = static_cast<std::size_t>(w.in);
  const std::size_t codes = has_int8_loop(w) ? in * static_cast<std::size_t>(w.bits) / 8 : 2 * in;
  return kInt8Tile * codes + 2 * int8_tile_scales(w) * sizeof(float);
}
/// Bytes of scratch for linear_int8(): a tile, and rows of the matrix that were far apart.
[[nodiscard]] constexpr std::size_t int8_scratch(const WeightView& w) {
  return int8_tile_bytes(w) + kInt8Tile * static_cast<std::size_t>(w.in) * (static_cast<std::size_t>(w.bits) + 4) / 8;
}

/// y[r, n] = sum over blocks of x.scale * w.scale * (sum of integer products) + w.bias * x.sum, n in [first, last).
/// The same bits for any number of rows, any range of n and every instruction set.
///   which    weight row of output n is which[n]; null: n itself
///   y        [x.rows, out]  stride `out`
///   scratch  int8_scratch(w) bytes, aligned as float
void linear_int8(
    const Int8Rows& x, const WeightView& w, const int* which, float* y, int first, int last, std::byte* scratch);

}  // namespace foresay
