#include "model/weight_source.h"

#include <cmath>

#include "base/error.h"
#include "model/head_packing.h"

namespace foresay {
namespace {

using Shape = std::vector<std::int64_t>;

std::string describe(const QuantGeometry& geometry) {
  return fmt::format("{} {} bits, group {}", name_of(geometry.mode), geometry.bits, geometry.group);
}

}  // namespace

const TensorView* WeightSource::peek(const std::string& tensor) const {
  const auto found = tensors_.find(tensor);
  return found == tensors_.end() ? nullptr : &found->second;
}

TensorView WeightSource::take(const std::string& tensor, const std::string& expected_shape) {
  auto node = tensors_.extract(tensor);
  if (node.empty()) {
    fail(ErrorCode::checkpoint, "[load] {} tensor {} {} is missing: no file of the checkpoint holds it", part_, tensor,
        expected_shape);
  }
  return std::move(node.mapped());
}

void WeightSource::wrong_shape(const TensorView& view, const std::string& expected) const {
  fail(ErrorCode::checkpoint, "[load] {} in {}: expected {}, found {} {}", view.name, view.file, expected,
      name_of(view.dtype), describe_shape(view.shape));
}

StoredMatrix WeightSource::whole(const std::string& module, Shape leading, int out, int in) {
  const auto shape = [&](std::int64_t columns) {
    Shape all = leading;
    all.insert(all.end(), {out, columns});
    return all;
  };
  StoredMatrix stored;
  stored.out = out;
  stored.in = in;
  const std::string expected = describe_shape(shape(in));
  const bool bare = has(module) && !has(module + ".weight");  // fused experts have no suffix
  stored.weight = take(bare ? module : module + ".weight", expected);
  stored.module = stored.weight.name;
  if (stored.module.ends_with(".weight")) stored.module.resize(stored.module.size() - 7);

  if (!has(module + ".scales")) {
    if (!is_float(stored.weight.dtype)) {
      wrong_shape(stored.weight,
          fmt::format("a float matrix {}, or packed words with {}.scales beside them", expected, stored.module));
    }
    if (stored.weight.shape != shape(in)) wrong_shape(stored.weight, expected);
    return stored;
  }

  stored.scales = take(module + ".scales", "");
  const QuantGeometry geometry = infer_geometry(stored.module, stored.weight, stored.scales, in);
  const Shape words = shape(static_cast<std::int64_t>(in) * geometry.bits / 32), groups = shape(in / geometry.group);
  if (stored.weight.shape != words)
    wrong_shape(stored.weight, fmt::format("U32 {} ({} of {})", describe_shape(words), describe(geometry), expected));
  if (stored.scales.shape != groups) wrong_shape(stored.scales, describe_shape(groups));
  if (geometry.mode == QuantMode::affine) {
    stored.biases = take(module + ".biases", describe_shape(groups));
    if (stored.biases.shape != groups || stored.biases.dtype != stored.scales.dtype) {
      wrong_shape(
          stored.biases, fmt::format("{} {}, as the scales", name_of(stored.scales.dtype), describe_shape(groups)));
    }
  }
  const auto declared = declared_geometry(config_, stored.module);
  if (declared && *declared != geometry) {
    contradicted_[fmt::format("config.json declares {}, the tensors are {}", describe(*declared), describe(geometry))]
        .push_back(stored.module);
  }
  stored.quant = geometry;
  return stored;
}

StoredMatrix WeightSource::repack(const std::string& module, const StoredMatrix& stored) const {
  const bool is_meant = packing_.form != HeadPacking::Form::affine || packing_.all || module.starts_with("layers.");
  return is_meant ? repacked(stored, packing_) : stored;
}

void WeightSource::account(std::span<const StoredMatrix> each) {
  const StoredMatrix& first = each.front();
  std::size_t bytes = 0;
  for (const StoredMatrix& one : each) bytes += one.weight.bytes + one.scales.bytes + one.biases.bytes;
  storage_.push_back(
      {first.module, first.quant ? describe(*first.quant) : std::string(name_of(first.weight.dtype)), bytes, read_});
}

StoredMatrix WeightSource::stored(const std::string& module, int out, int in) {
  const StoredMatrix one = repack(module, whole(module, {}, out, in));
  account({&one, 1});
  return one;
}

StoredMatrix WeightSource::router(const std::string& module, int out, int in) {
  StoredMatrix one = whole(module, {}, out, in);
  one.decides = true;
  account({&one, 1});
  return one;
}

Matrix WeightSource::matrix(const std::string& module, int out, int in) {
  return ops_.matrix(stored(module, out, in));
}

std::vector<StoredMatrix> WeightSource::stack(const std::string& module, int count, int out, int in) {
  const StoredMatrix all = whole(module, {count}, out, in);
  const auto matrix_of = [](const TensorView& view, int index) {
    if (view.shape.empty()) return view;
    TensorView one = view.part(index, 1);
    one.shape.erase(one.shape.begin());
    return one;
  };
  std::vector<StoredMatrix> each(static_cast<std::size_t>(count), all);
  for (int i = 0; i < count; ++i) {
    StoredMatrix& one = each[static_cast<std::size_t>(i)];
    one.weight = matrix_of(all.weight, i);
    one.scales = matrix_of(all.scales, i);
    one.biases = matrix_of(all.biases, i);
    one = repack(module, one);
  }
  account(each);
  return each;
}

std::vector<float> WeightSource::values(const std::string& tensor, int size) {
  const TensorView view = take(tensor, fmt::format("[{}]", size));
  if (view.elements() != size) wrong_shape(view, fmt::format("{} values", size));
  std::vector<float> values = view.to_float();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      fail(ErrorCode::checkpoint, "[load] {} in {}: value {} is {}; the checkpoint is damaged", view.name, view.file, i,
          values[i]);
    }
  }
  return values;
}

Vector WeightSource::gain(const std::string& tensor, int size, bool zero_centred) {
  const TensorView* view = peek(tensor);
  if (view != nullptr && view->shape != Shape{size}) wrong_shape(*view, fmt::format("[{}]", size));
  std::vector<float> gain = values(tensor, size);
  if (zero_centred) {
    for (float& g : gain) g += 1.0f;
  }
  return ops_.vector(std::move(gain));
}

void WeightSource::expect_all_taken() const {
  for (const auto& [contradiction, modules] : contradicted_) {
    const std::string more = modules.size() > 1 ? fmt::format(" and {} more of the {}", modules.size() - 1, part_) : "";
    report_.warn(fmt::format("{}{}: {}; going by the tensors", modules.front(), more, contradiction));
  }
  if (tensors_.empty()) return;
  std::string names;
  int shown = 0;
  for (const auto& [name, view] : tensors_) {
    if (++shown > 8) break;
    names += fmt::format("{}{} {} ({})", names.empty() ? "" : ", ", view.name, describe_shape(view.shape), view.file);
  }
  fail(ErrorCode::checkpoint, "[load] {} {} tensor{} that this architecture does not have: {}{}; is model_type right?",
      tensors_.size(), part_, tensors_.size() == 1 ? "" : "s", names, tensors_.size() > 8 ? ", ..." : "");
}

}  // namespace foresay
