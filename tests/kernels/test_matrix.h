// kernels/test_matrix.h: weight matrices for kernel tests, in every format and at any address.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "fixtures/owned_tensor.h"
#include "kernels/every_isa.h"
#include "kernels/unpack_row.h"

namespace foresay {

struct MatrixFormat {
  WeightType type = WeightType::f32;
  int bits = 0, group = 0;
  DType scale_type = DType::bf16;
};

inline const std::vector<MatrixFormat> kPlainFormats = {
    {.type = WeightType::f32}, {.type = WeightType::f16}, {.type = WeightType::bf16}};

/// Affine in every width and group size; the scales' type goes round f32, f16, bf16.
inline std::vector<MatrixFormat> affine_formats() {
  std::vector<MatrixFormat> formats;
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group : {32, 64, 128}) {
      const DType types[] = {DType::f32, DType::f16, DType::bf16};
      formats.push_back({WeightType::affine, bits, group, types[formats.size() % 3]});
    }
  }
  return formats;
}

inline const std::vector<MatrixFormat> kFpFormats = {
    {WeightType::mxfp4, 4, 32}, {WeightType::mxfp8, 8, 32}, {WeightType::nvfp4, 4, 16}};

/// Every packed format.
inline std::vector<MatrixFormat> packed_formats() {
  auto formats = affine_formats();
  formats.insert(formats.end(), kFpFormats.begin(), kFpFormats.end());
  return formats;
}

inline WeightType weight_type(DType type) {
  return type == DType::f32 ? WeightType::f32 : type == DType::f16 ? WeightType::f16 : WeightType::bf16;
}

/// A matrix with bytes of its own. Buffers end where their tensor ends, so that a sanitizer sees any read beyond.
class TestMatrix {
 public:
  /// Random values about 1 in magnitude; random codes and scales of either sign for affine formats.
  static TestMatrix random(const MatrixFormat& format, int out, int in, std::uint64_t seed) {
    TestMatrix matrix;
    matrix.view_ = {.type = format.type, .out = out, .in = in, .data = nullptr};
    if (!is_packed(format.type)) {
      const DType type = format.type == WeightType::f32   ? DType::f32
                         : format.type == WeightType::f16 ? DType::f16
                                                          : DType::bf16;
      matrix.data_ = OwnedTensor::of(type, {out, in}, random_floats(product(out, in), seed)).bytes;
    } else {
      const int groups = in / format.group;
      matrix.view_.bits = format.bits;
      matrix.view_.group = format.group;
      matrix.view_.scale_type = weight_type(format.scale_type);
      matrix.data_.resize(product(out, in) * static_cast<std::size_t>(format.bits) / 8);
      std::mt19937_64 words(seed);
      for (std::byte& byte : matrix.data_) byte = static_cast<std::byte>(words());
      if (format.type != WeightType::affine) {  // scales about 1: E8M0 2^-4 to 2^3, E4M3 1/4 to 4
        const bool e4m3 = format.type == WeightType::nvfp4;
        matrix.scales_.resize(product(out, groups));
        for (std::byte& byte : matrix.scales_) {
          byte = static_cast<std::byte>(e4m3 ? 0x28 + words() % 32 : 123 + words() % 8);
        }
        matrix.place(0);
        return matrix;
      }
      const auto values = [&](std::uint64_t from, float scale) {
        return OwnedTensor::of(format.scale_type, {out, groups}, random_floats(product(out, groups), from, scale))
            .bytes;
      };
      matrix.scales_ = values(seed + 1, 2.0f / static_cast<float>(1 << format.bits));
      matrix.biases_ = values(seed + 2, 1.0f);
    }
    matrix.place(0);
    return matrix;
  }

  TestMatrix() = default;
  TestMatrix(TestMatrix&&) = default;

  /// Moves every buffer to an address `offset` bytes past a multiple of 16.
  void place(std::size_t offset) {
    const auto moved = [offset](const std::vector<std::byte>& from, std::vector<std::byte>& to) {
      to.assign(offset, std::byte{0});
      to.insert(to.end(), from.begin(), from.end());
      to.shrink_to_fit();
      return to.data() + offset;
    };
    view_.data = moved(data_, placed_data_);
    if (!is_packed(view_.type)) return;
    view_.scales = moved(scales_, placed_scales_);
    if (view_.type == WeightType::affine) view_.biases = moved(biases_, placed_biases_);
  }

  [[nodiscard]] const WeightView& view() const { return view_; }
  [[nodiscard]] const std::vector<std::byte>& data() const { return data_; }
  [[nodiscard]] std::string describe() const {
    return "type " + std::to_string(static_cast<int>(view_.type)) + ", [" + std::to_string(view_.out) + ", " +
           std::to_string(view_.in) + "], bits " + std::to_string(view_.bits) + ", group " +
           std::to_string(view_.group);
  }

 private:
  static std::size_t product(int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); }

  WeightView view_;
  std::vector<std::byte> data_, scales_, biases_;
  std::vector<std::byte> placed_data_, placed_scales_, placed_biases_;
};

/// All rows, unpacked with the instruction set in use.
inline std::vector<float> unpack_all(const WeightView& w) {
  std::vector<float> values(static_cast<std::size_t>(w.out) * static_cast<std::size_t>(w.in));
  for (int n = 0; n < w.out; ++n) unpack_row(w, n, values.data() + static_cast<std::ptrdiff_t>(n) * w.in);
  return values;
}

/// Every format at sizes on both sides of the vector width, or one to three groups.
template <typename Visit>
void for_each_matrix(int out, Visit visit) {
  std::uint64_t seed = 100;
  for (const MatrixFormat& format : kPlainFormats) {
    for (const int in : {1, 7, 8, 15, 16, 17, 31, 33, 256}) visit(TestMatrix::random(format, out, in, seed += 10));
  }
  for (const MatrixFormat& format : packed_formats()) {
    for (const int groups : {1, 2, 3}) visit(TestMatrix::random(format, out, groups * format.group, seed += 10));
  }
}

}  // namespace foresay
