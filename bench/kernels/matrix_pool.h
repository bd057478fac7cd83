// bench/kernels/matrix_pool.h: random matrices in the file's layout, more of them than the last cache holds.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/unpack_row.h"

namespace foresay {

/// Copies of one matrix [out, in], used in turns: weights come from memory, as they do in a pass over a whole model.
class MatrixPool {
 public:
  static constexpr std::size_t kBytes = std::size_t{512} << 20;

  /// bits: 4 and 8 are affine in groups of 64, 16 is bf16.
  MatrixPool(int bits, int out, int in) {
    std::mt19937 random(1);
    const auto groups = static_cast<std::size_t>(out) * static_cast<std::size_t>(in / 64);
    const std::size_t values = static_cast<std::size_t>(out) * static_cast<std::size_t>(in);
    std::vector<std::uint32_t> one(values * static_cast<std::size_t>(bits) / 32 + (bits < 16 ? groups : 0));
    for (std::uint32_t& word : one) word = random();
    view_ = {.type = bits == 16 ? WeightType::bf16 : WeightType::affine, .out = out, .in = in};
    const std::size_t packed = values * static_cast<std::size_t>(bits) / 32;
    if (bits == 16) {
      for (std::uint32_t& pair : one) pair = (pair & 0x807F807F) | 0x3C003C00;  // of size 2^-7: exponents stay in range
    } else {
      view_.bits = bits;
      view_.group = 64;
      auto* const halves = reinterpret_cast<std::uint16_t*>(one.data() + packed);
      for (std::size_t i = 0; i < groups; ++i) {
        halves[i] = static_cast<std::uint16_t>(0x3C00 | (halves[i] & 0x7F));
        halves[groups + i] = static_cast<std::uint16_t>(0xBC00 | (halves[groups + i] & 0x7F));
      }
    }
    copies_.assign(1 + kBytes / (one.size() * 4), one);
    packed_ = packed;
    groups_ = groups;
  }

  [[nodiscard]] std::size_t bytes() const { return copies_.front().size() * 4; }  ///< that a product reads

  [[nodiscard]] const WeightView& next() {
    const std::vector<std::uint32_t>& words = copies_[at_++ % copies_.size()];
    view_.data = words.data();
    if (view_.type == WeightType::affine) {
      const auto* const halves = reinterpret_cast<const std::uint16_t*>(words.data() + packed_);
      view_.scales = halves;
      view_.biases = halves + groups_;
    }
    return view_;
  }

 private:
  std::vector<std::vector<std::uint32_t>> copies_;
  WeightView view_;
  std::size_t packed_ = 0, groups_ = 0, at_ = 0;
};

}  // namespace foresay
