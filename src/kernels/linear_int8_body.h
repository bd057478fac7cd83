// kernels/linear_int8_body.h: linear_int8.h but for its innermost loops, compiled once per instruction set. Those are
// nibble_tile() and byte_tile(), which int8_tile_*.h define.
//
// What both add up, in sixteen lanes, each by fused multiply-add in order of blocks:
//   nibble_tile  two blocks at a time: lanes 0-7 hold the first, 8-15 the second; lane j of a block is the sum of the
//                products of its elements 8j .. 8j+7
//   byte_tile    one block at a time: lane j is the sum of the products of its elements 4j .. 4j+3, codes less 128
// An integer lane sum becomes a float and is multiplied by weight scale * activation scale, a float itself. Then
// offset * activation sum of 32 inputs i is added to lane i mod 16. The lanes are added pairwise at the end.
#pragma once

#include "kernels/linear_int8.h"
#include "kernels/unpack_row_body.h"

namespace foresay::kernels::FORESAY_LANES {

/// W weight rows: codes, and scale and offset for every 32 inputs, padded with zeros as activations are.
template <int W>
struct WeightTile {
  const std::uint8_t* codes[W];
  const float* scales[W];
  const float* offsets[W];
};

/// One row of activations of a tile and what follows it.
struct Int8Tile {
  const std::int8_t* codes;
  const float* scales;
  const float* sums;
  std::ptrdiff_t code_stride, scale_stride, sum_stride;
  int in;
};

constexpr int kBytesAhead = 8192;  // 2 to 12 KiB measured alike, 1 KiB and 16 KiB worse

/// Asks for the weights that are read next but a little: rows follow each other in memory, so a fixed distance reaches
/// into the rows of the next tile. Without it a pass over few rows waits for memory half of the time.
inline void prefetch(const void* p) {
  __builtin_prefetch(static_cast<const std::byte*>(p) + kBytesAhead);
}

}  // namespace foresay::kernels::FORESAY_LANES

#include FORESAY_INT8_TILE

namespace foresay::kernels::FORESAY_LANES {

/// Sixteen scales or offsets from element `i` on.
inline Lanes load_scales(const void* values, WeightType type, std::size_t i) {
  const auto* at = static_cast<const std::byte*>(values) + i * bytes_of(type);
  if (type == WeightType::bf16) return load_bf16(at);
  if (type == WeightType::f16) return load_f16(at);
  float all[16];
  std::memcpy(all, at, sizeof all);
  return load(all);
}

/// Scales (or offsets) of one row, once per 32 inputs; zeros behind them.
inline void spread(
    const void* values, WeightType type, std::size_t first, int groups, int per_group, float* out, std::size_t padded) {
  const auto count = static_cast<std::size_t>(groups);
  std::size_t i = 0;
  if (per_group == 1) {
    for (; i + 16 <= count; i += 16) store(out + i, load_scales(values, type, first + i));
    for (; i < count; ++i) out[i] = element(values, type, first + i);
  } else {
    alignas(64) float some[16];
    for (; i < count; i += 16) {
      const std::size_t n = count - i < 16 ? count - i : 16;
      if (n == 16) {
        store(some, load_scales(values, type, first + i));
      } else {
        for (std::size_t j = 0; j < n; ++j) some[j] = element(values, type, first + i + j);
      }
      float* to = out + i * static_cast<std::size_t>(per_group);
      if (per_group == 2) {
        for (std::size_t j = 0; j < n; ++j) to[2 * j] = to[2 * j + 1] = some[j];
      } else {
        for (std::size_t j = 0; j < n; ++j) to[4 * j] = to[4 * j + 1] = to[4 * j + 2] = to[4 * j + 3] = some[j];
      }
    }
  }
  for (i = count * static_cast<std::size_t>(per_group); i < padded; ++i) out[i] = 0;
}

/// Fills a tile from row n on. Codes of one byte count from -128, so their offset takes the rest.
template <int W>
inline WeightTile<W> weight_tile(const WeightView& w, int n, std::byte* scratch) {
  WeightTile<W> tile;
  const std::size_t padded = int8_sums(w.in);
  const int groups = w.in / w.group, per_group = w.group / 32;
  auto* floats = reinterpret_cast<float*>(scratch);
  auto* codes = reinterpret_cast<std::uint8_t*>(floats + 2 * kInt8Tile * padded);
  for (int j = 0; j < W; ++j) {
    float *scales = floats, *offsets = floats + padded;
    floats += 2 * padded;
    const std::size_t first = static_cast<std::size_t>(n + j) * static_cast<std::size_t>(groups);
    if (w.type == WeightType::affine) {
      spread(w.scales, w.scale_type, first, groups, per_group, scales, padded);
      spread(w.biases, w.scale_type, first, groups, per_group, offsets, padded);
      if (w.bits != 4) {
        for (std::size_t i = 0; i < padded; i += 16) {
          store(offsets + i, fma(splat(128), load(scales + i), load(offsets + i)));
        }
      }
    } else {  // mxfp4: bytes are twice the values, and 128 is 0
      for (std::size_t i = 0; i < padded; ++i) {
        scales[i] = i < static_cast<std::size_t>(groups) ? 0.5f * fp_scale(w, first + i) : 0;
        offsets[i] = 0;
      }
    }
    tile.scales[j] = scales;
    tile.offsets[j] = offsets;
    tile.codes[j] = codes_of(w, n + j);
    if (!has_int8_loop(w)) {
      FORESAY_LANES::unpack_codes(w, n + j, codes);
      tile.codes[j] = codes;
      codes += w.in;
    }
  }
  return tile;
}

/// W weight rows against R activation rows, offsets included.
template <int W, int R>
inline void int8_tile(const Int8Tile& x, Int8Order order, const WeightTile<W>& w, float* y, std::ptrdiff_t y_stride) {
  Lanes acc[W][R];
  if (order == Int8Order::nibbles) {
    nibble_tile<W, R>(x, w, acc);
  } else {
    byte_tile<W, R>(x, w, acc);
  }
  for (int i = 0; i < x.in / 32; i += 16) {
    for (int r = 0; r < R; ++r) {
      const Lanes sums = load(x.sums + r * x.sum_stride + i);
      for (int j = 0; j < W; ++j) acc[j][r] = fma(load(w.offsets[j] + i), sums, acc[j][r]);
    }
  }
  for (int r = 0; r < R; ++r) {
    if constexpr (W == 4) {
      sum_four(acc[0][r], acc[1][r], acc[2][r], acc[3][r], y + r * y_stride);
    } else {
      for (int j = 0; j < W; ++j) y[r * y_stride + j] = sum(acc[j][r]);
    }
  }
}

template <int W>
inline void int8_rows(const Int8Rows& x, int begin, int end, const WeightTile<W>& w, float* y, std::ptrdiff_t stride) {
  const auto tile_at = [&](int r) {
    const auto row = static_cast<std::ptrdiff_t>(r);
    const auto codes = static_cast<std::ptrdiff_t>(int8_row(x.in)), sums = static_cast<std::ptrdiff_t>(int8_sums(x.in));
    return Int8Tile{x.codes + row * codes, x.scales + row * (codes / kInt8Block), x.sums + row * sums, codes,
        codes / kInt8Block, sums, x.in};
  };
  int r = begin;
  for (; r + 4 <= end; r += 4) int8_tile<W, 4>(tile_at(r), x.order, w, y + r * stride, stride);
  if (end - r == 3) int8_tile<W, 3>(tile_at(r), x.order, w, y + r * stride, stride);
  if (end - r == 2) int8_tile<W, 2>(tile_at(r), x.order, w, y + r * stride, stride);
  if (end - r == 1) int8_tile<W, 1>(tile_at(r), x.order, w, y + r * stride, stride);
}

inline void linear_int8(const Int8Rows& x, const WeightView& w, float* y, int first, int last, std::byte* scratch) {
  constexpr int kRowsTogether = 64;  // their codes stay in the second cache while the weight rows pass by
  for (int begin = 0; begin < x.rows; begin += kRowsTogether) {
    const int end = x.rows - begin < kRowsTogether ? x.rows : begin + kRowsTogether;
    int n = first;
    for (; n + kInt8Tile <= last; n += kInt8Tile) {
      int8_rows<kInt8Tile>(x, begin, end, weight_tile<kInt8Tile>(w, n, scratch), y + n, w.out);
    }
    for (; n < last; ++n) int8_rows<1>(x, begin, end, weight_tile<1>(w, n, scratch), y + n, w.out);
  }
}

inline void quantise_row(const float* x, int in, Int8Order order, std::int8_t* codes, float* scales, float* sums) {
  std::memset(codes, 0, int8_row(in));
  for (std::size_t b = static_cast<std::size_t>(in / kInt8Block); b < int8_row(in) / kInt8Block; ++b) scales[b] = 0;
  for (std::size_t i = static_cast<std::size_t>(in / 32); i < int8_sums(in); ++i) sums[i] = 0;
  for (int b = 0; b < in / kInt8Block; ++b, x += kInt8Block) {
    const Lanes v[4] = {load(x), load(x + 16), load(x + 32), load(x + 48)};
    Lanes most = splat(0), bad = splat(0);  // 0 * infinity is NaN
    for (const Lanes& each : v) {
      most = max(most, abs(each));
      bad = fma(each, splat(0), bad);
    }
    const float highest = largest(most), nan = sum(bad);
    float scale = highest / 127.0f, inverse = 127.0f / highest;
    if (nan != nan) scale = nan;
    if (!(highest >= 0x1p-100f) || nan != nan) inverse = 0;  // too small for the inverse: zeros
    if (inverse == 0 && nan == nan) scale = 0;
    alignas(16) std::int8_t natural[kInt8Block];
    float total[2];
    for (int half = 0; half < 2; ++half) {
      Lanes q[2];
      for (int i = 0; i < 2; ++i) {
        q[i] = inverse == 0 ? splat(0) : rounded(v[2 * half + i] * splat(inverse));
        store_int8(natural + 32 * half + 16 * i, q[i]);
      }
      total[half] = sum(q[0] + q[1]);  // whole numbers below 2^24: exact in any order
    }
    scales[b] = scale;
    sums[2 * b] = scale * total[0];
    sums[2 * b + 1] = scale * total[1];
    if (order == Int8Order::natural) {
      std::memcpy(codes + b * kInt8Block, natural, kInt8Block);
    } else {
      std::int8_t* even = codes + b / 2 * (2 * kInt8Block) + b % 2 * 32;
      std::uint16_t pairs[32];
      std::memcpy(pairs, natural, sizeof pairs);
      for (int j = 0; j < 32; ++j) {
        even[j] = static_cast<std::int8_t>(pairs[j] & 0xff);
        even[kInt8Block + j] = static_cast<std::int8_t>(pairs[j] >> 8);
      }
    }
  }
}

}  // namespace foresay::kernels::FORESAY_LANES
