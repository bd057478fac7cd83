// cli/bench/shape_parts.h: the files of a random checkpoint (shape.h).
#pragma once

#include <filesystem>
#include <vector>

#include "checkpoint/safetensors.h"
#include "cli/bench/shape.h"

namespace foresay::cli {

/// Tensors of trunk and head, named as MLX names them, with values of a scale that keeps hidden states and logits
/// finite. They are made while they are written.
[[nodiscard]] std::vector<TensorToWrite> random_trunk(const Shape& shape, const Packing& packing);
[[nodiscard]] std::vector<TensorToWrite> random_head(const Shape& shape, const Packing& packing);

/// config.json, generation_config.json, tokenizer_config.json with a chat template.
void write_configs(const std::filesystem::path& folder, const Shape& shape, const Packing& packing);

/// tokenizer.json: byte-level BPE as large as the vocabulary, so that loading costs what a real one's does. It encodes
/// any text; its merges are made up.
void write_tokenizer(const std::filesystem::path& folder, const Shape& shape);

/// The tokens behind the byte-pair vocabulary, in order of their ids; the third ends a turn.
struct AddedToken {
  std::string_view content;
  bool special;
};
[[nodiscard]] std::span<const AddedToken> added_tokens();
[[nodiscard]] int first_added_id(const Shape& shape);

/// Splits text before byte pairs are merged; in tokenizer.json and tokenizer_config.json.
extern const char* const kPretokenise;

/// 64 random bits, a function of seed and position (splitmix64, Steele et al. 2014).
[[nodiscard]] inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t position) {
  std::uint64_t x = seed + (position + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace foresay::cli
