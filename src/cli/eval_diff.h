// cli/eval_diff.h: what two dumps of `eval` differ in.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace foresay::cli {

/// One tensor of two dumps.
struct TensorDifference {
  std::string name, shape;  ///< shape as the first dump has it, or the second where the first lacks it
  std::string problem;      ///< why values cannot be compared: missing or misshapen; empty otherwise
  double max_abs = 0;       ///< largest absolute difference
  double relative_rms = 0;  ///< RMS of the difference over RMS of the first dump's values
  bool above = false;       ///< a problem, or relative_rms above the tolerance
};

/// Every tensor of either dump, in the order in which they lie in the first file, which for dumps of `eval` is the
/// order of execution; those that only the second has come last. Values that are not finite in both alike are equal.
/// Throws ErrorCode::usage when a file is not there, ErrorCode::checkpoint when it is damaged.
[[nodiscard]] std::vector<TensorDifference> diff_dumps(
    const std::filesystem::path& first, const std::filesystem::path& second, double tolerance);

/// The result as text, one line per tensor and a verdict; the first tensor above the tolerance is marked.
[[nodiscard]] std::string diff_text(const std::vector<TensorDifference>& differences, double tolerance);
[[nodiscard]] nlohmann::ordered_json diff_json(const std::vector<TensorDifference>& differences, double tolerance);

}  // namespace foresay::cli
