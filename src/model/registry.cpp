#include "model/registry.h"

namespace foresay {

std::span<const Family> families() {
  static constexpr Family kFamilies[] = {
      {"qwen3_5", "qwen3_5", load_qwen3_5},
      {"qwen3_5_text", "qwen3_5", load_qwen3_5},
  };
  return kFamilies;
}

}  // namespace foresay
