// kernels/unpack_row_body.h: unpack_row.h over Lanes, compiled once per instruction set.
#pragma once

#include "kernels/elements.h"

namespace foresay::kernels::FORESAY_LANES {

/// `count` codes (a multiple of 32) of a bit stream, low bits first, `bits` each (docs/checkpoints.md).
inline void unpack_stream(const std::uint8_t* from, int bits, int count, std::uint8_t* codes) {
  if (bits == 8) {
    std::memcpy(codes, from, static_cast<std::size_t>(count));
    return;
  }
  if (bits == 4) {
    for (int i = 0; i < count / 2; ++i) {
      codes[2 * i] = from[i] & 15;
      codes[2 * i + 1] = static_cast<std::uint8_t>(from[i] >> 4);
    }
    return;
  }
  // Eight codes are `bits` whole bytes.
  const std::uint64_t field = (std::uint64_t{1} << bits) - 1;
  for (int i = 0; i < count; i += 8, from += bits) {
    std::uint64_t packed = 0;
    std::memcpy(&packed, from, static_cast<std::size_t>(bits));
#if defined(__BMI2__)
    const std::uint64_t eight = _pdep_u64(packed, field * 0x0101010101010101u);
#else
    std::uint64_t eight = 0;
    for (int j = 0; j < 8; ++j) eight |= (packed >> (j * bits) & field) << (8 * j);
#endif
    std::memcpy(codes + i, &eight, 8);
  }
}

inline void unpack_codes(const WeightView& w, int n, std::uint8_t* codes) {
  unpack_stream(codes_of(w, n), w.bits, w.in, codes);
  if (w.type != WeightType::mxfp4) return;
  for (int i = 0; i < w.in; i += 16) {
    std::int8_t values[16];
    twice_e2m1(codes + i, values);
    for (int j = 0; j < 16; ++j) codes[i + j] = static_cast<std::uint8_t>(values[j] + kMxfp4Zero);
  }
}

/// One row of an mxfp4, mxfp8 or nvfp4 matrix.
inline void unpack_fp_row(const WeightView& w, int n, float* row) {
  const auto groups = static_cast<std::size_t>(w.in / w.group);
  const std::uint8_t* from = codes_of(w, n);
  for (std::size_t g = 0; g < groups; ++g) {
    const float scale = fp_scale(w, static_cast<std::size_t>(n) * groups + g);
    for (int i = 0; i < w.group; i += 16, from += 2 * w.bits, row += 16) {
      if (w.type == WeightType::mxfp8) {
        store(row, splat(scale) * load_e4m3(from));
      } else {
        std::uint8_t codes[16];
        std::int8_t values[16];
        for (int j = 0; j < 8; ++j) {
          codes[2 * j] = from[j] & 15;
          codes[2 * j + 1] = static_cast<std::uint8_t>(from[j] >> 4);
        }
        twice_e2m1(codes, values);
        store(row, splat(scale) * (load_int8(values) * splat(0.5f)));
      }
    }
  }
}

inline void unpack_row(const WeightView& w, int n, float* row) {
  const auto in = static_cast<std::size_t>(w.in);
  const std::size_t first = static_cast<std::size_t>(n) * in;
  switch (w.type) {
    case WeightType::f32:
      std::memcpy(row, static_cast<const std::byte*>(w.data) + first * sizeof(float), in * sizeof(float));
      break;
    case WeightType::f16: {
      const auto* from = static_cast<const std::byte*>(w.data) + first * 2;
      std::size_t i = 0;
      for (; i + 16 <= in; i += 16) store(row + i, load_f16(from + 2 * i));
      for (; i < in; ++i) row[i] = from_f16(load_at<std::uint16_t>(from, i));
      break;
    }
    case WeightType::bf16: {
      const auto* from = static_cast<const std::byte*>(w.data) + first * 2;
      std::size_t i = 0;
      for (; i + 16 <= in; i += 16) store(row + i, load_bf16(from + 2 * i));
      for (; i < in; ++i) row[i] = from_bf16(load_at<std::uint16_t>(from, i));
      break;
    }
    case WeightType::affine: {
      const auto groups = static_cast<std::size_t>(w.in / w.group);
      const std::size_t group_bytes = static_cast<std::size_t>(w.group) * static_cast<std::size_t>(w.bits) / 8;
      const std::uint8_t* from = codes_of(w, n);
      std::uint8_t codes[128];
      for (std::size_t g = 0; g < groups; ++g, from += group_bytes, row += w.group) {
        unpack_stream(from, w.bits, w.group, codes);
        const std::size_t at = static_cast<std::size_t>(n) * groups + g;
        const Lanes scale = splat(element(w.scales, w.scale_type, at)),
                    bias = splat(element(w.biases, w.scale_type, at));
        for (int i = 0; i < w.group; i += 16) store(row + i, scale * load_u8(codes + i) + bias);
      }
      break;
    }
    default:
      unpack_fp_row(w, n, row);
      break;
  }
}

}  // namespace foresay::kernels::FORESAY_LANES
