#include "model/families/step3p5_norms.h"

#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "base/error.h"
#include "checkpoint/name_list.h"

namespace foresay {
namespace {

constexpr double kCentred = 0.5;  // means below are of gains stored minus 1

double mean(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(std::max<std::size_t>(1, values.size()));
}

/// What config.json states about the head's norms.
std::optional<Decided<NormEncoding>> declared(const Config& top) {
  const auto read = [](const Config& config, const char* key) -> std::optional<Decided<NormEncoding>> {
    const auto text = config.maybe_string(key);
    if (!text) return std::nullopt;
    const auto value = contract_value<NormEncoding>(*text);
    if (!value) {
      fail(ErrorCode::checkpoint, "{}: {}: expected {}, found \"{}\"", config.where(), key,
          contract_choices<NormEncoding>(), *text);
    }
    return Decided<NormEncoding>{*value, fmt::format("{}: {}", config.where(), key)};
  };
  for (const char* key : {"mtplx_mtp_norm_encoding", "mtp_norm_encoding"}) {
    if (auto found = read(top, key)) return found;
  }
  if (const auto quantisation = top.maybe_object("mtplx_mtp_quantization")) return read(*quantisation, "norm_encoding");
  return std::nullopt;
}

TensorView shifted(const TensorView& view, std::vector<float> values) {
  for (float& value : values) value += 1.0f;
  auto memory = std::make_shared<std::vector<float>>(std::move(values));
  TensorView gain = view;
  gain.dtype = DType::f32;
  gain.data = reinterpret_cast<const std::byte*>(memory->data());
  gain.bytes = memory->size() * sizeof(float);
  gain.owner = std::move(memory);
  return gain;
}

}  // namespace

Decided<NormEncoding> step3p5_trunk_norms(const Checkpoint& checkpoint, const Step35Names& names, Report& report) {
  double sum = 0;
  int count = 0;
  for (const auto& [name, view] : names.trunk) {
    if (!name.ends_with("input_layernorm.weight")) continue;
    sum += mean(view.to_float());
    ++count;
  }
  const double average = count > 0 ? sum / count : 0;
  const NormEncoding by_mean = average < kCentred ? NormEncoding::zero_centred : NormEncoding::absolute;
  if (names.has_original_names == names.has_converted_names) {
    return {by_mean, fmt::format("the input norms' mean is {:.2f}", average)};
  }
  const Decided<NormEncoding> decided =
      names.has_original_names ? Decided<NormEncoding>{NormEncoding::zero_centred, "names of the original release"}
                               : Decided<NormEncoding>{NormEncoding::absolute, "names of an MLX conversion"};
  if (decided.value != by_mean) {
    report.warn(fmt::format("{}: {} mean {} norms, but the input norms' mean is {:.2f}; going by the names",
        checkpoint.folder().string(), decided.source, name_of(decided.value), average));
  }
  return decided;
}

Decided<NormEncoding> settle_head_norms(const FamilyRequest& request, std::map<std::string, TensorView>& head) {
  std::optional<Decided<NormEncoding>> stated = request.stated.head_norms;
  if (!stated) stated = declared(request.checkpoint.config());
  int changed = 0, norms = 0;
  std::map<std::string, std::set<bool>> by_depth;
  std::vector<std::string> unclear;
  for (auto& [name, view] : head) {
    if (view.shape.size() != 1 || name.find("norm") == std::string::npos || !name.ends_with(".weight")) continue;
    std::vector<float> values = view.to_float();
    const double average = mean(values);
    const bool shift = stated ? stated->value == NormEncoding::zero_centred : average < kCentred;
    ++norms;
    changed += shift ? 1 : 0;
    by_depth[name.substr(0, name.find('.', 7))].insert(shift);
    if (!stated && average > 0.25 && average < 0.75) unclear.push_back(fmt::format("{} ({:.2f})", view.name, average));
    if (shift) view = shifted(view, std::move(values));
  }
  for (const auto& [depth, kinds] : by_depth) {
    if (kinds.size() < 2) continue;
    request.report.warn(fmt::format("[load] head {}: some norms look stored minus 1 and some not; {}", depth,
        unclear.empty() ? "none is near the border" : "near the border: " + list_names(unclear)));
  }
  request.report.note(fmt::format("{} of {} norms of the head were stored minus 1", changed, norms));
  if (stated) return *stated;
  return {2 * changed >= norms ? NormEncoding::zero_centred : NormEncoding::absolute,
      "the mean of each; below 0.5 it is stored minus 1"};
}

}  // namespace foresay
