#include "cli/eval_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace foresay::cli {
namespace {

SafetensorsFile open_dump(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    fail(ErrorCode::usage, "--diff: expected a safetensors file that `eval --out` wrote, found none at {}",
        path.string());
  }
  return SafetensorsFile::open(path);
}

std::vector<const TensorView*> in_file_order(const SafetensorsFile& file) {
  std::vector<const TensorView*> views;
  for (const auto& [name, view] : file.tensors()) views.push_back(&view);
  std::ranges::stable_sort(views, {}, [](const TensorView* view) { return view->data; });
  return views;
}

/// |a - b|, 0 for values that are not finite in the same way, infinite for those that are not alike.
double distance(float a, float b) {
  if (std::isfinite(a) && std::isfinite(b)) return std::fabs(double{a} - double{b});
  const bool alike = a == b || (std::isnan(a) && std::isnan(b));
  return alike ? 0 : std::numeric_limits<double>::infinity();
}

void compare(const TensorView& a, const TensorView& b, TensorDifference& out) {
  const std::vector<float> x = a.to_float(), y = b.to_float();
  double error = 0, scale = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = distance(x[i], y[i]);
    out.max_abs = std::max(out.max_abs, d);
    error += d * d;
    if (std::isfinite(x[i])) scale += double{x[i]} * double{x[i]};
  }
  out.relative_rms = error == 0 ? 0 : std::sqrt(error / scale);  // infinite where the first dump is all zeros
}

const TensorDifference* first_above(const std::vector<TensorDifference>& differences) {
  const auto found = std::ranges::find(differences, true, &TensorDifference::above);
  return found == differences.end() ? nullptr : &*found;
}

}  // namespace

std::vector<TensorDifference> diff_dumps(
    const std::filesystem::path& first, const std::filesystem::path& second, double tolerance) {
  const SafetensorsFile a = open_dump(first), b = open_dump(second);
  std::vector<TensorDifference> differences;
  for (const TensorView* view : in_file_order(a)) {
    TensorDifference& entry = differences.emplace_back();
    entry.name = view->name;
    entry.shape = describe_shape(view->shape);
    const auto other = b.tensors().find(view->name);
    if (other == b.tensors().end()) {
      entry.problem = "missing in the second file";
    } else if (other->second.shape != view->shape) {
      entry.problem = "shape " + describe_shape(other->second.shape) + " in the second file";
    } else if (is_float(view->dtype) && is_float(other->second.dtype)) {
      compare(*view, other->second, entry);
    } else if (view->bytes != other->second.bytes ||
               (view->bytes > 0 && std::memcmp(view->data, other->second.data, view->bytes) != 0)) {
      entry.problem = "other values in the second file";  // ids: near is no better than far
    }
    entry.above = !entry.problem.empty() || !(entry.relative_rms <= tolerance);
  }
  for (const TensorView* view : in_file_order(b)) {
    if (a.tensors().count(view->name) > 0) continue;
    differences.push_back({view->name, describe_shape(view->shape), "missing in the first file", 0, 0, true});
  }
  return differences;
}

std::string diff_text(const std::vector<TensorDifference>& differences, double tolerance) {
  std::size_t width = 0;
  for (const TensorDifference& entry : differences) width = std::max(width, entry.name.size());
  const TensorDifference* first = first_above(differences);
  std::string text;
  for (const TensorDifference& entry : differences) {
    const std::string values = entry.problem.empty()
                                   ? fmt::format("max {:<9.3g} rms {:<9.3g}", entry.max_abs, entry.relative_rms)
                                   : entry.problem;
    std::string line = fmt::format("{:<{}}  {:<14} {}", entry.name, width, entry.shape, values);
    if (&entry == first) {
      line += "  <- first above the tolerance";
    } else if (entry.above) {
      line += "  above";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  const auto above = std::ranges::count(differences, true, &TensorDifference::above);
  return text + (first == nullptr
                        ? fmt::format("{} tensors, all within {:g} (relative RMS)\n", differences.size(), tolerance)
                        : fmt::format("{} of {} tensors above {:g} (relative RMS), the first is {}\n", above,
                              differences.size(), tolerance, first->name));
}

nlohmann::ordered_json diff_json(const std::vector<TensorDifference>& differences, double tolerance) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const TensorDifference& entry : differences) {
    nlohmann::ordered_json one = {{"name", entry.name}, {"shape", entry.shape}, {"above", entry.above}};
    if (entry.problem.empty()) {
      one["max_abs"] = entry.max_abs;  // null where it is infinite
      one["relative_rms"] = entry.relative_rms;
    } else {
      one["problem"] = entry.problem;
    }
    tensors.push_back(std::move(one));
  }
  const TensorDifference* first = first_above(differences);
  return {{"tolerance", tolerance}, {"within", first == nullptr},
      {"first_above", first == nullptr ? nlohmann::ordered_json() : nlohmann::ordered_json(first->name)},
      {"tensors", std::move(tensors)}};
}

}  // namespace foresay::cli
