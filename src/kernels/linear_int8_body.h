// kernels/linear_int8_body.h: linear_int8.h but for its innermost loops, compiled once per instruction set. Those are
// what int8_tile_*.h define:
//   interleave()       32 bytes of each of sixteen weight rows, so that words of four bytes lie side by side
//   nibble_products()  integer sums of products of sixteen weight rows with R rows of activations, for 4-bit codes;
//                      either of interleaved words, or of a whole block of rows, interleaved in registers
//   byte_products()    the same for codes of one byte
//
// A lane is a weight row. A unit is what has one scale on either side: a block of activations, or a group of weights
// where that is shorter. For each unit in order, by fused multiply-add:
//   y += (weight scale * activation scale) * integer sum;  y += weight offset * activation sum
#pragma once

#include "kernels/linear_int8.h"
#include "kernels/unpack_row_body.h"

namespace foresay::kernels::FORESAY_LANES {

constexpr std::size_t kWord = 4 * kInt8Tile;  ///< bytes of one word of four bytes of every row of a tile

/// Rows of activations of a tile.
struct Int8Tile {
  const std::int8_t* codes;
  const float* scales;
  const float* sums;
  std::ptrdiff_t code_stride, scale_stride, sum_stride;
  int in;
};

/// Where in a row to look ahead: far enough for memory to answer, near enough for the first cache to hold it all.
constexpr std::ptrdiff_t kBytesAhead = 384;

/// Codes of sixteen weight rows as they lie in the file, `stride` apart, read a unit of each at a time. While that is
/// multiplied, as many lines that will be are asked for, evenly spread: a burst of misses makes the core wait that a
/// trickle does not. Where a line is two units, they are half of the rows' at a time.
struct CodeRows {
  const std::uint8_t* at;
  std::ptrdiff_t stride;

  /// `next`: the rows that are read after these. `unit`: bytes of a row, 32 or 64.
  CodeRows(const std::uint8_t* rows, std::ptrdiff_t row_bytes, const std::uint8_t* next, std::ptrdiff_t unit)
      : at(rows),
        stride(row_bytes),
        step_(unit == 64 ? 64 : 8 * row_bytes),
        other_step_(64 - step_ + (unit == 64 ? 64 : 0)) {
    const std::ptrdiff_t before_end = row_bytes - kBytesAhead;
    if (before_end <= 0) {
      ahead_ = next - before_end;
      return;
    }
    const std::ptrdiff_t lines = (before_end + 63) / 64;
    ahead_ = rows + kBytesAhead;
    next_ = next + (64 * lines - before_end);
    left_ = lines * 64 / unit;
  }

  void next_unit(std::ptrdiff_t bytes) {
    at += bytes;
    ahead_ += step_;
    std::swap(step_, other_step_);
    if (--left_ == 0) ahead_ = next_;
  }
  [[nodiscard]] CodeRows behind(std::ptrdiff_t words) const {
    CodeRows codes = *this;
    codes.at += 4 * words;
    return codes;
  }
  /// Always inline: GCC drops calls of a function that only prefetches.
  [[gnu::always_inline]] void ask_for(int d) const { __builtin_prefetch(ahead_ + d * stride); }

 private:
  const std::uint8_t *ahead_, *next_ = nullptr;  ///< line d to ask for lies d * stride behind `ahead_`
  std::ptrdiff_t step_, other_step_, left_ = 0;  ///< units until the lines are those of the next rows
};
/// The same, interleaved: [words][16][4]. For every word a line behind `ahead` is asked for, into the second cache: the
/// first one may not hold a tile more.
struct CodeWords {
  const std::uint8_t *at, *ahead;

  void next_unit(std::ptrdiff_t bytes) { *this = behind(bytes / 4); }
  [[nodiscard]] CodeWords behind(std::ptrdiff_t words) const {
    const auto bytes = words * static_cast<std::ptrdiff_t>(kWord);
    return {at + bytes, ahead + bytes};
  }
  [[gnu::always_inline]] void ask_for(int d) const { __builtin_prefetch(ahead + d * static_cast<int>(kWord), 0, 2); }
};

/// Scales and offsets of sixteen weight rows, side by side: [groups][16].
struct TileScales {
  const float* scales;
  const float* offsets;
  int group;
};

/// The four bytes of an activation row that a word of codes is multiplied with.
inline std::int32_t word_at(const std::int8_t* p) {
  std::int32_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

}  // namespace foresay::kernels::FORESAY_LANES

#include FORESAY_INT8_TILE

namespace foresay::kernels::FORESAY_LANES {

/// Sixteen rows of `bytes` that follow each other, 32 bytes of each at a time: take(where, stride, how many before).
/// The last are copied together, as far as there are any. With `ahead`, what follows the rows is asked for meanwhile.
template <typename Take>
inline void in_runs(const std::uint8_t* rows, std::size_t bytes, bool ahead, Take take) {
  const std::uint8_t* next = rows + kInt8Tile * bytes;
  std::size_t run = 0;
  for (std::size_t at = 0; at + 32 <= bytes; at += 32, ++run) {
    if (ahead) {
      for (int i = 0; i < 8; ++i, next += 64) __builtin_prefetch(next);
    }
    take(rows + at, static_cast<std::ptrdiff_t>(bytes), run);
  }
  const std::size_t done = 32 * run;
  if (done == bytes) return;
  std::uint8_t rest[kInt8Tile][32] = {};
  for (std::size_t j = 0; j < kInt8Tile; ++j) std::memcpy(rest[j], rows + j * bytes + done, bytes - done);
  take(rest[0], std::ptrdiff_t{sizeof rest[0]}, run);
}

/// Rows in words. Writes up to the next 32 bytes per row.
inline void interleave_rows(const std::uint8_t* rows, std::size_t bytes, bool ahead, std::uint8_t* out) {
  in_runs(rows, bytes, ahead, [&](const std::uint8_t* at, std::ptrdiff_t stride, std::size_t run) {
    interleave(at, stride, out + run * 8 * kWord);
  });
}

/// Affine scales (or biases) as floats side by side, [groups][16]. Writes up to the next 16 groups.
inline void interleave_scales(const std::uint8_t* rows, WeightType type, int groups, bool ahead, float* out) {
  const std::size_t bytes = static_cast<std::size_t>(groups) * bytes_of(type);
  if (type == WeightType::f32) return interleave_rows(rows, bytes, ahead, reinterpret_cast<std::uint8_t*>(out));
  in_runs(rows, bytes, ahead, [&](const std::uint8_t* at, std::ptrdiff_t stride, std::size_t run) {
    using Words [[gnu::vector_size(kWord)]] = std::uint32_t;
    alignas(kWord) std::uint8_t words[8 * kWord];
    interleave(at, stride, words);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; ++i) {  // two to a word
      Words both;
      std::memcpy(&both, words + i * kWord, sizeof both);
      const Words first = both << 16, second = both & 0xffff0000u;
      std::memcpy(out + 2 * kInt8Tile * (8 * run + i), &first, sizeof first);
      std::memcpy(out + 2 * kInt8Tile * (8 * run + i) + kInt8Tile, &second, sizeof second);
    }
  });
  if (type == WeightType::bf16) return;
  for (int i = 0; i < kInt8Tile * groups; ++i) {
    out[i] = from_f16(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(out[i]) >> 16));
  }
}

/// Rows of a matrix that are a tile, and where its interleaved form goes.
struct WeightTile {
  const WeightView& view;
  int first;   ///< row of `view`
  bool ahead;  ///< the next tile is read after this one
  std::byte* scratch;

  [[nodiscard]] float* scales() const { return reinterpret_cast<float*>(scratch); }
  [[nodiscard]] float* offsets() const { return scales() + int8_tile_scales(view); }
  [[nodiscard]] std::uint8_t* words() const {
    return reinterpret_cast<std::uint8_t*>(offsets() + int8_tile_scales(view));
  }
  [[nodiscard]] std::size_t row_bytes() const {
    return static_cast<std::size_t>(view.in) * static_cast<std::size_t>(view.bits) / 8;
  }
};

inline TileScales interleave_scales(const WeightTile& tile) {
  const WeightView& w = tile.view;
  const int groups = w.in / w.group;
  const std::size_t before = static_cast<std::size_t>(tile.first) * static_cast<std::size_t>(groups);
  float *scales = tile.scales(), *offsets = tile.offsets();
  if (w.type == WeightType::affine) {
    const std::size_t at = before * bytes_of(w.scale_type);
    interleave_scales(static_cast<const std::uint8_t*>(w.scales) + at, w.scale_type, groups, tile.ahead, scales);
    interleave_scales(static_cast<const std::uint8_t*>(w.biases) + at, w.scale_type, groups, tile.ahead, offsets);
  } else {  // mxfp4: bytes are twice the values, from kMxfp4Zero on
    for (int g = 0; g < groups; ++g) {
      for (int j = 0; j < kInt8Tile; ++j) {
        const float half = 0.5f * fp_scale(w, before + static_cast<std::size_t>(j * groups + g));
        scales[g * kInt8Tile + j] = half;
        offsets[g * kInt8Tile + j] = -kMxfp4Zero * half;
      }
    }
  }
  return {scales, offsets, w.group};
}

/// The words of a tile's codes; what follows it is to be asked for while they are multiplied first.
inline CodeWords interleave_codes(const WeightTile& tile) {
  std::uint8_t* words = tile.words();
  if (has_int8_loop(tile.view)) {
    const std::uint8_t* rows = codes_of(tile.view, tile.first);
    interleave_rows(rows, tile.row_bytes(), false, words);
    return {words, tile.ahead ? rows + kInt8Tile * tile.row_bytes() : words};
  }
  const auto in = static_cast<std::size_t>(tile.view.in);
  std::uint8_t* rows = words + kInt8Tile * in;
  for (int j = 0; j < kInt8Tile; ++j) {
    FORESAY_LANES::unpack_codes(tile.view, tile.first + j, rows + static_cast<std::size_t>(j) * in);
  }
  interleave_rows(rows, in, false, words);
  return {words, words};
}

/// Copies sixteen rows of a matrix together, as a matrix; row(j) says which.
template <typename Row>
inline WeightView gathered(const WeightView& w, Row row, std::byte* out) {
  WeightView copy = w;
  const auto copy_rows = [&](const void* from, std::size_t bytes) {
    std::byte* begin = out;
    for (int j = 0; j < kInt8Tile; ++j, out += bytes) {
      std::memcpy(out, static_cast<const std::byte*>(from) + static_cast<std::size_t>(row(j)) * bytes, bytes);
    }
    return begin;
  };
  const auto in = static_cast<std::size_t>(w.in), groups = in / static_cast<std::size_t>(w.group);
  const bool affine = w.type == WeightType::affine;
  const std::size_t scale_bytes = groups * (affine ? bytes_of(w.scale_type) : 1);
  copy.data = copy_rows(w.data, in * static_cast<std::size_t>(w.bits) / 8);
  copy.scales = copy_rows(w.scales, scale_bytes);
  if (affine) copy.biases = copy_rows(w.biases, scale_bytes);
  return copy;
}

/// Sixteen weight rows against R rows of activations; the first `count` outputs are stored. Unit: 64 or 32 inputs.
template <Int8Order Order, int Unit, int R, typename Codes>
[[gnu::noinline]] void int8_tile(
    const Int8Tile& x, Codes codes, const TileScales& w, float* y, std::ptrdiff_t y_stride, int count) {
  constexpr int kWords = Unit / (Order == Int8Order::nibbles ? 8 : 4);
  constexpr bool kHalves = Unit < kInt8Block;  // a unit is half a block
  Lanes acc[R];
  for (int r = 0; r < R; ++r) acc[r] = splat(0);
  const std::int8_t* x_codes = x.codes;
  const float *x_scales = x.scales, *x_sums = x.sums + (kHalves ? 1 : 0), *scales = w.scales, *offsets = w.offsets;
  for (int i = 0, left = w.group; i < x.in; i += Unit) {
    Lanes products[R];
    if constexpr (Order == Int8Order::nibbles) {
      nibble_products<R, kWords>(codes, x_codes, x.code_stride, products);
    } else {
      byte_products<R, kWords>(codes, x_codes, x.code_stride, products);
    }
    const Lanes scale = load(scales), offset = load(offsets);
    for (int r = 0; r < R; ++r) {
      acc[r] = fma(products[r], scale * splat(x_scales[r * x.scale_stride]), acc[r]);
      acc[r] = fma(offset, splat(x_sums[r * x.sum_stride]), acc[r]);
    }
    codes.next_unit(4 * kWords);
    x_codes += Unit;
    const bool block_ends = !kHalves || i % kInt8Block != 0;
    x_scales += block_ends ? 1 : 0;
    x_sums += !kHalves ? 3 : block_ends ? 2 : 1;
    left -= Unit;
    if (left == 0) {
      scales += kInt8Tile;
      offsets += kInt8Tile;
      left = w.group;
    }
  }
  for (int r = 0; r < R; ++r) {
    if (count == kInt8Tile) {
      store(y + r * y_stride, acc[r]);
    } else {
      store_part(y + r * y_stride, acc[r], count);
    }
  }
}

inline Int8Tile rows_from(const Int8Rows& x, int r) {
  const auto row = static_cast<std::ptrdiff_t>(r);
  const auto blocks = static_cast<std::ptrdiff_t>(int8_blocks(x.in)),
             sums = static_cast<std::ptrdiff_t>(int8_sums(x.in));
  return {x.codes + row * x.in, x.scales + row * blocks, x.sums + row * sums, x.in, blocks, sums, x.in};
}

/// Four rows of activations at most: codes are interleaved in registers, on their way from memory.
template <Int8Order Order>
inline void few_rows(
    const Int8Rows& x, int begin, int end, const WeightTile& w, float* y, std::ptrdiff_t stride, int count) {
  const TileScales scales = interleave_scales(w);
  const std::uint8_t* rows = codes_of(w.view, w.first);
  const auto bytes = static_cast<std::ptrdiff_t>(w.row_bytes());
  const std::uint8_t* next = rows + (w.ahead ? kInt8Tile * bytes : 0);
  const CodeRows codes(rows, bytes, next, Order == Int8Order::nibbles ? kInt8Block / 2 : kInt8Block);
  const auto multiply = [&]<int R>() {
    int8_tile<Order, kInt8Block, R>(rows_from(x, begin), codes, scales, y + begin * stride, stride, count);
  };
  switch (end - begin) {
    case 1:
      return multiply.template operator()<1>();
    case 2:
      return multiply.template operator()<2>();
    case 3:
      return multiply.template operator()<3>();
    default:
      return multiply.template operator()<4>();
  }
}

/// Any number of rows of activations: codes are interleaved once for all.
template <Int8Order Order, int Unit>
inline void many_rows(
    const Int8Rows& x, int begin, int end, const WeightTile& w, float* y, std::ptrdiff_t stride, int count) {
  const TileScales scales = interleave_scales(w);
  CodeWords codes = interleave_codes(w);
  int r = begin;
  const auto multiply = [&]<int R>() {
    for (; r + R <= end; r += R) {
      int8_tile<Order, Unit, R>(rows_from(x, r), codes, scales, y + r * stride, stride, count);
      codes.ahead = codes.at;  // once is enough
    }
  };
  multiply.template operator()<kInt8TileRows>();
  if constexpr (kInt8TileRows > 4) multiply.template operator()<4>();
  multiply.template operator()<2>();
  multiply.template operator()<1>();
}

inline void linear_int8(
    const Int8Rows& x, const WeightView& w, const int* which, float* y, int first, int last, std::byte* scratch) {
  constexpr int kRowsTogether = 64;  // their codes stay in the second cache while the weight rows pass by
  const auto chosen = [&](int rows) {
    const bool nibbles = x.order == Int8Order::nibbles;
    if (w.group < kInt8Block) return nibbles ? many_rows<Int8Order::nibbles, 32> : many_rows<Int8Order::natural, 32>;
    if (rows > 4 || !has_int8_loop(w)) {
      return nibbles ? many_rows<Int8Order::nibbles, 64> : many_rows<Int8Order::natural, 64>;
    }
    return nibbles ? few_rows<Int8Order::nibbles> : few_rows<Int8Order::natural>;
  };
  for (int begin = 0; begin < x.rows; begin += kRowsTogether) {
    const int end = x.rows - begin < kRowsTogether ? x.rows : begin + kRowsTogether;
    const auto multiply = chosen(end - begin);
    for (int n = first; n < last; n += kInt8Tile) {
      const int count = last - n < kInt8Tile ? last - n : kInt8Tile;
      if (which == nullptr && count == kInt8Tile) {
        multiply(x, begin, end, {w, n, true, scratch}, y + n, w.out, count);
        continue;
      }
      const auto row = [&](int j) {
        const int output = n + (j < count ? j : count - 1);  // lanes without an output repeat the last
        return which == nullptr ? output : which[output];
      };
      const WeightView some = gathered(w, row, scratch + int8_tile_bytes(w));
      multiply(x, begin, end, {some, 0, false, scratch}, y + n, w.out, count);
    }
  }
}

/// Even bytes of eight, then odd ones.
inline std::uint64_t evens_first(std::uint64_t eight) {
  const auto together = [](std::uint64_t v) {
    v &= 0x00ff00ff00ff00ffu;
    v = (v | v >> 8) & 0x0000ffff0000ffffu;
    return (v | v >> 16) & 0xffffffffu;
  };
  return together(eight) | together(eight >> 8) << 32;
}

inline void quantise_row(const float* x, int in, Int8Order order, std::int8_t* codes, float* scales, float* sums) {
  for (int b = 0; b < in / kInt8Block; ++b, x += kInt8Block, codes += kInt8Block, sums += 3) {
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
    float total[2];
    for (int half = 0; half < 2; ++half) {
      Lanes q[2];
      for (int i = 0; i < 2; ++i) {
        q[i] = inverse == 0 ? splat(0) : rounded(v[2 * half + i] * splat(inverse));
        store_int8(codes + 32 * half + 16 * i, q[i]);
      }
      total[half] = sum(q[0] + q[1]);  // whole numbers below 2^24: exact in any order
    }
    scales[b] = scale;
    sums[0] = scale * (total[0] + total[1]);
    sums[1] = scale * total[0];
    sums[2] = scale * total[1];
    if (order == Int8Order::natural) continue;
    for (int i = 0; i < kInt8Block; i += 8) {
      std::uint64_t eight;
      std::memcpy(&eight, codes + i, sizeof eight);
      eight = evens_first(eight);
      std::memcpy(codes + i, &eight, sizeof eight);
    }
  }
}

}  // namespace foresay::kernels::FORESAY_LANES
