// kernels/linear_int8.h: rows of int8 activations times an affine or mxfp4 matrix. Integers inside a block are exact;
// blocks are added in float32 in a fixed order (docs/numerics.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/linear.h"

namespace foresay {

inline constexpr int kInt8Block = 64;          ///< activations that share a scale
inline constexpr int kInt8Tile = kLinearTile;  ///< weight rows that linear_int8() works on together

/// The order of the int8 values of a row; a matrix decides it.
enum class Int8Order {
  natural,  ///< for codes of one byte each
  nibbles   ///< for 4-bit codes. Of two blocks: even elements of the first, of the second, odd of the first, of the
            ///< second
};

/// Activations [rows, in] as int8: value = scale * code. Rows are padded with zeros to two whole blocks.
struct Int8Rows {
  Int8Order order = Int8Order::natural;
  int rows = 0, in = 0;
  const std::int8_t* codes = nullptr;  ///< [rows, int8_row(in)]
  const float* scales = nullptr;       ///< [rows, int8_row(in) / 64]
  const float* sums = nullptr;         ///< [rows, int8_sums(in)] scale * sum of the codes of 32 inputs
};

[[nodiscard]] constexpr std::size_t int8_row(int in) {
  return (static_cast<std::size_t>(in) + 127) / 128 * 128;
}
[[nodiscard]] constexpr std::size_t int8_sums(int in) {
  return (static_cast<std::size_t>(in) / 32 + 15) / 16 * 16;
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

/// Bytes of scratch for linear_int8(): scales and offsets of a tile, and its codes where they are not bytes already.
[[nodiscard]] constexpr std::size_t int8_scratch(const WeightView& w) {
  const std::size_t codes = has_int8_loop(w) ? 0 : static_cast<std::size_t>(w.in);
  return kInt8Tile * (2 * int8_sums(w.in) * sizeof(float) + codes);
}

/// y[r, n] = sum over blocks of x.scale * w.scale * (sum of integer products) + sum of w.bias * x.sums, n in
/// [first, last). The same bits for any number of rows, any range of n and every instruction set.
///   y        [x.rows, out]  stride `out`
///   scratch  int8_scratch(w) bytes, aligned as float
void linear_int8(const Int8Rows& x, const WeightView& w, float* y, int first, int last, std::byte* scratch);

}  // namespace foresay
