// kernels/int8_tile_reference.h: the innermost loops of linear_int8(), as plain loops: the definition.
#pragma once

namespace foresay::kernels::FORESAY_LANES {

inline constexpr int kInt8TileRows = 4;  ///< rows of activations that are read together

/// Words of four bytes of sixteen rows, from 32 bytes of each: out[word][row].
inline void interleave(const std::uint8_t* rows, std::ptrdiff_t stride, std::uint8_t* out) {
  for (int word = 0; word < 8; ++word) {
    for (int row = 0; row < 16; ++row, out += 4) std::memcpy(out, rows + row * stride + 4 * word, 4);
  }
}

/// Byte i of lane's row.
inline int byte_of(CodeWords codes, int lane, int i) {
  return codes.at[i / 4 * 64 + 4 * lane + i % 4];
}
inline int byte_of(CodeRows codes, int lane, int i) {
  return codes.at[lane * codes.stride + i];
}

/// Codes of `Words` words: the low halves of a word's bytes with four activations, the high halves with the next four.
template <int R, int Words, typename Codes>
inline void nibble_products(Codes codes, const std::int8_t* x, std::ptrdiff_t stride, Lanes (&products)[R]) {
  for (int r = 0; r < R; ++r) {
    for (int lane = 0; lane < 16; ++lane) {
      int sum = 0;
      for (int i = 0; i < 4 * Words; ++i) {
        const int code = byte_of(codes, lane, i);
        const std::int8_t* p = x + r * stride + i / 4 * 8 + i % 4;
        sum += (code & 15) * p[0] + (code >> 4) * p[4];
      }
      products[r].v[lane] = static_cast<float>(sum);
    }
  }
}

template <int R, int Words, typename Codes>
inline void byte_products(Codes codes, const std::int8_t* x, std::ptrdiff_t stride, Lanes (&products)[R]) {
  for (int r = 0; r < R; ++r) {
    for (int lane = 0; lane < 16; ++lane) {
      int sum = 0;
      for (int i = 0; i < 4 * Words; ++i) sum += byte_of(codes, lane, i) * x[r * stride + i];
      products[r].v[lane] = static_cast<float>(sum);
    }
  }
}

}  // namespace foresay::kernels::FORESAY_LANES
