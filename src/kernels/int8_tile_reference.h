// kernels/int8_tile_reference.h: the innermost loops of linear_int8(), as plain loops: the definition.
#pragma once

namespace foresay::kernels::FORESAY_LANES {

template <int W, int R>
inline void nibble_tile(const Int8Tile& x, const WeightTile<W>& w, Lanes (&acc)[W][R]) {
  for (int j = 0; j < W; ++j) {
    for (int r = 0; r < R; ++r) {
      acc[j][r] = {};
      for (int b = 0; b < x.in / kInt8Block; ++b) {
        const std::uint8_t* codes = w.codes[j] + 32 * b;
        const std::int8_t* even = x.codes + r * x.code_stride + b / 2 * 128 + b % 2 * 32;
        for (int lane = 0; lane < 8; ++lane) {
          int products = 0;
          for (int i = 4 * lane; i < 4 * lane + 4; ++i) {
            products += (codes[i] & 15) * even[i] + (codes[i] >> 4) * even[64 + i];
          }
          const float scale = w.scales[j][2 * b + lane / 4] * x.scales[r * x.scale_stride + b];
          float& sum = acc[j][r].v[b % 2 * 8 + lane];
          sum = fused(static_cast<float>(products), scale, sum);
        }
      }
    }
  }
}

template <int W, int R>
inline void byte_tile(const Int8Tile& x, const WeightTile<W>& w, Lanes (&acc)[W][R]) {
  for (int j = 0; j < W; ++j) {
    for (int r = 0; r < R; ++r) {
      acc[j][r] = {};
      for (int b = 0; b < x.in / kInt8Block; ++b) {
        const std::uint8_t* codes = w.codes[j] + kInt8Block * b;
        const std::int8_t* values = x.codes + r * x.code_stride + kInt8Block * b;
        for (int lane = 0; lane < 16; ++lane) {
          int products = 0;
          for (int i = 4 * lane; i < 4 * lane + 4; ++i) products += (codes[i] - 128) * values[i];
          const float scale = w.scales[j][2 * b + lane / 8] * x.scales[r * x.scale_stride + b];
          acc[j][r].v[lane] = fused(static_cast<float>(products), scale, acc[j][r].v[lane]);
        }
      }
    }
  }
}

}  // namespace foresay::kernels::FORESAY_LANES
