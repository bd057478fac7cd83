#include "model/registry.h"

#include "base/error.h"

namespace foresay {

std::span<const Family> families() {
  static constexpr Family kFamilies[] = {
      {"qwen3_5", "qwen3_5", load_qwen3_5},
      {"qwen3_5_text", "qwen3_5", load_qwen3_5},
      {"qwen3_5_moe", "qwen3_5_moe", load_qwen3_5},
      {"qwen3_5_moe_text", "qwen3_5_moe", load_qwen3_5},
      {"qwen3_5_mtp", "qwen3_5_moe", load_qwen3_5},
      {"qwen3_next", "qwen3_next", load_qwen3_5},
      {"step3p5", "step3p5", load_step3p5, step3p5_head_in_trunk},
      {"step3p7", "step3p5", load_step3p5, step3p5_head_in_trunk},
  };
  return kFamilies;
}

std::string try_head(const FamilyRequest& request, const std::function<void()>& attach) {
  const std::size_t before = request.storage.size();
  try {
    attach();
    return {};
  } catch (const Error& error) {
    request.storage.resize(before);
    std::string problem = error.what();
    if (problem.starts_with("[load] ")) problem.erase(0, 7);  // the caller says where
    return problem;
  }
}

}  // namespace foresay
