// cli/bench/shape.h: sizes of released models, and how a random checkpoint of one is packed.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace foresay::cli {

/// Sizes of a dense Qwen3.5 model; every fourth layer is full attention, embeddings are tied, there is one MTP layer.
/// bench/peers/random_qwen35_gguf.py has the same table for llama.cpp.
struct Shape {
  std::string_view name;
  int hidden, layers, heads, kv_heads, head_dim, intermediate;
  int key_heads, value_heads, linear_head_dim;  ///< of GatedDeltaNet layers
  int vocab;                                    ///< rows of the embedding, padding included
};

[[nodiscard]] std::span<const Shape> shapes();

/// Bits of a weight: 4 and 8 are affine in groups of 64, 16 is bf16.
struct Packing {
  int bits = 4;
  int head_bits = 4;  ///< of the embedding, which is also the output matrix
};

/// Ids that text can hold; the embedding's rows from here on are padding.
[[nodiscard]] int vocab_limit(const Shape& shape);

/// The folder of a random checkpoint of this shape under the user's cache ($XDG_CACHE_HOME/foresay/shapes); made now
/// where it is not there whole. The same shape and packing always gives the same bytes. Throws ErrorCode::capacity
/// where the disk has no room.
[[nodiscard]] std::filesystem::path shape_folder(const Shape& shape, const Packing& packing);

/// "qwen3_5-0.8b-4bit", "qwen3_5-0.8b-4bit-head16": of the folder.
[[nodiscard]] std::string packed_name(const Shape& shape, const Packing& packing);

}  // namespace foresay::cli
