// cli/eval_text.h: `eval --text` and `--against`: how well a model predicts a text, and how far it is from another run.
#pragma once

#include <optional>
#include <string>

#include "cli/open_model.h"

namespace foresay::cli {

struct TextOptions {
  ModelOptions model;
  std::string text;     ///< a file; "-" is stdin
  std::string ids;      ///< instead of a text
  std::string out;      ///< where logits go; empty: nowhere
  std::string against;  ///< logits of an earlier run; empty: none
  std::optional<int> window;
  int depth = 3;
  int chunk = 512;
  bool json = false;
};

/// Scores, prints, and gives the exit status.
[[nodiscard]] int eval_text(const TextOptions& options);

}  // namespace foresay::cli
