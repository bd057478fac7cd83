// Random tensors: packed words are random bits, everything else is drawn around a mean.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "cli/bench/shape_parts.h"

namespace foresay::cli {
namespace {

using Bytes = std::span<std::byte>;

constexpr int kGroup = 64, kConvTaps = 4;
constexpr double kLogitScale =
    4;  // of the output matrix: the likeliest of 248k ids then has a probability worth a sort

std::uint64_t seed_of(std::string_view name) {  // FNV-1a: std::hash differs between libraries
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

/// Nearest, ties to even; of finite values.
std::uint16_t bf16(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

/// In [0, 1).
double uniform(std::uint64_t seed, std::uint64_t position) {
  return static_cast<double>(random_bits(seed, position) >> 11) * 0x1p-53;
}

class Tensors {
 public:
  explicit Tensors(std::string prefix) : prefix_(std::move(prefix)) {}

  /// Values mean ± half the width, uniform.
  void values(
      const std::string& name, std::vector<std::int64_t> shape, double mean, double width, DType dtype = DType::bf16) {
    add(name, dtype, std::move(shape), [=, seed = seed_of(prefix_ + name)](Bytes piece, std::uint64_t offset) {
      const std::size_t size = size_of(dtype);
      for (std::size_t i = 0; i < piece.size() / size; ++i) {
        const double value = mean + width * (uniform(seed, offset / size + i) - 0.5);
        const auto half = bf16(value);
        const auto single = static_cast<float>(value);
        std::memcpy(piece.data() + i * size, dtype == DType::f32 ? static_cast<const void*>(&single) : &half, size);
      }
    });
  }

  void gain(const std::string& name, int size, double mean = 1) { values(name, {size}, mean, 0.1); }

  /// `module`.weight [out, in] with entries of standard deviation gain / sqrt(in), so that rows of scale 1 come out
  /// with scale `gain`; packed with .scales and .biases beside it.
  void matrix(const std::string& module, int out, int in, int bits, double gain = 1) {
    const double deviation = gain / std::sqrt(in);
    if (bits == 16) return values(module + ".weight", {out, in}, 0, deviation * std::sqrt(12.0));
    const std::uint64_t seed = seed_of(prefix_ + module);
    add(module + ".weight", DType::u32, {out, static_cast<std::int64_t>(in) * bits / 32},
        [seed](Bytes piece, std::uint64_t offset) {
          for (std::size_t i = 0; i < piece.size(); i += 8) {
            const std::uint64_t word = random_bits(seed, (offset + i) / 8);
            std::memcpy(piece.data() + i, &word, std::min<std::size_t>(8, piece.size() - i));
          }
        });
    const double levels = std::exp2(bits), step = deviation / std::sqrt((levels * levels - 1) / 12);
    const auto group_values = [&](const char* suffix, double factor) {
      add(module + suffix, DType::bf16, {out, in / kGroup}, [=](Bytes piece, std::uint64_t offset) {
        for (std::size_t i = 0; i < piece.size(); i += 2) {
          const std::uint16_t value = bf16(factor * step * (0.75 + 0.5 * uniform(~seed, (offset + i) / 2)));
          std::memcpy(piece.data() + i, &value, 2);
        }
      });
    };
    group_values(".scales", 1);
    group_values(".biases", -(levels - 1) / 2);  // entries are then centred on 0
  }

  void attention(const std::string& layer, const Shape& s, int bits) {
    const int q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
    matrix(layer + "self_attn.q_proj", 2 * q, s.hidden, bits);
    matrix(layer + "self_attn.k_proj", kv, s.hidden, bits);
    matrix(layer + "self_attn.v_proj", kv, s.hidden, bits);
    matrix(layer + "self_attn.o_proj", s.hidden, q, bits);
    gain(
        layer + "self_attn.q_norm.weight", s.head_dim, 1.7);  // released gains; below 1.25 they would look zero-centred
    gain(layer + "self_attn.k_norm.weight", s.head_dim, 1.7);
  }

  void recurrent(const std::string& layer, const Shape& s, int bits) {
    const int values_wide = s.value_heads * s.linear_head_dim;
    const int channels = 2 * s.key_heads * s.linear_head_dim + values_wide;
    const std::string prefix = layer + "linear_attn.";
    matrix(prefix + "in_proj_qkv", channels, s.hidden, bits);
    matrix(prefix + "in_proj_z", values_wide, s.hidden, bits);
    matrix(prefix + "in_proj_b", s.value_heads, s.hidden, bits);
    matrix(prefix + "in_proj_a", s.value_heads, s.hidden, bits);
    matrix(prefix + "out_proj", s.hidden, values_wide, bits);
    values(prefix + "conv1d.weight", {channels, kConvTaps, 1}, 0, 1);
    values(prefix + "A_log", {s.value_heads}, 0, 1, DType::f32);
    values(prefix + "dt_bias", {s.value_heads}, -3, 1);  // a state that forgets over tens of tokens
    gain(prefix + "norm.weight", s.linear_head_dim);
  }

  void layer(const std::string& prefix, const Shape& s, int bits, bool full_attention) {
    gain(prefix + "input_layernorm.weight", s.hidden);
    gain(prefix + "post_attention_layernorm.weight", s.hidden);
    full_attention ? attention(prefix, s, bits) : recurrent(prefix, s, bits);
    matrix(prefix + "mlp.gate_proj", s.intermediate, s.hidden, bits);
    matrix(prefix + "mlp.up_proj", s.intermediate, s.hidden, bits);
    matrix(prefix + "mlp.down_proj", s.hidden, s.intermediate, bits);
  }

  [[nodiscard]] std::vector<TensorToWrite> take() { return std::move(tensors_); }

 private:
  void add(const std::string& name, DType dtype, std::vector<std::int64_t> shape,
      std::function<void(Bytes, std::uint64_t)> make) {
    tensors_.push_back({prefix_ + name, dtype, std::move(shape), nullptr, std::move(make)});
  }

  std::string prefix_;
  std::vector<TensorToWrite> tensors_;
};

}  // namespace

std::vector<TensorToWrite> random_trunk(const Shape& shape, const Packing& packing) {
  Tensors tensors("language_model.model.");
  tensors.matrix("embed_tokens", shape.vocab, shape.hidden, packing.head_bits, kLogitScale);
  for (int i = 0; i < shape.layers; ++i) {
    tensors.layer(fmt::format("layers.{}.", i), shape, packing.bits, /*full_attention=*/(i + 1) % 4 == 0);
  }
  tensors.gain("norm.weight", shape.hidden);
  return tensors.take();
}

std::vector<TensorToWrite> random_head(const Shape& shape, const Packing& packing) {
  Tensors tensors("mtp.");
  tensors.gain("pre_fc_norm_embedding.weight", shape.hidden);
  tensors.gain("pre_fc_norm_hidden.weight", shape.hidden);
  tensors.matrix("fc", shape.hidden, 2 * shape.hidden, packing.bits);
  tensors.layer("layers.0.", shape, packing.bits, /*full_attention=*/true);
  tensors.gain("norm.weight", shape.hidden);
  return tensors.take();
}

}  // namespace foresay::cli
