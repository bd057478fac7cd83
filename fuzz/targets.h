// fuzz/targets.h: readers of files that nobody vouches for, each as a function of the file's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace foresay::fuzz {

using Bytes = std::span<const std::uint8_t>;

/// Reads an input. Either it is read, or an Error comes out that a user could act on: its code is not `internal`, its
/// message is not empty and valid UTF-8. Anything else ends the process.
using Target = void (*)(Bytes input);

void safetensors(Bytes input);    ///< a whole safetensors file
void config(Bytes input);         ///< config.json beside good weights
void wiring(Bytes input);         ///< foresay.json, and mtplx_runtime.json, beside a good checkpoint
void index(Bytes input);          ///< model.safetensors.index.json beside two shards
void tokenizer(Bytes input);      ///< tokenizer.json
void chat_template(Bytes input);  ///< chat_template.jinja, with a conversation rendered by it

struct NamedTarget {
  std::string_view name;  ///< also of its folder in fuzz/corpus
  Target run;
};

inline constexpr NamedTarget kTargets[] = {{"safetensors", safetensors}, {"config", config}, {"wiring", wiring},
    {"index", index}, {"tokenizer", tokenizer}, {"chat_template", chat_template}};

}  // namespace foresay::fuzz
