#include "cli/logits_file.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "cli/option_values.h"

namespace foresay::cli {
namespace {

constexpr const char* kRemedy = "give a file that `eval --text --out` wrote";

SafetensorsFile open_reference(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    fail(ErrorCode::usage, "--against: expected a safetensors file, found none at {}; {}", path.string(), kRemedy);
  return SafetensorsFile::open(path);
}

std::string value_of(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? std::string() : found->second;
}

}  // namespace

LogitsWriter::LogitsWriter(
    const std::filesystem::path& path, std::span<const TokenId> ids, int vocab, int window, const std::string& lane)
    : writer_(path,
          {{"ids", DType::i32, {static_cast<std::int64_t>(ids.size())}, nullptr},
              {"logits", DType::f32, {static_cast<std::int64_t>(ids.size()), vocab}, nullptr}},
          {{"foresay_window", std::to_string(window)}, {"foresay_lane", lane}}) {
  static_assert(sizeof(TokenId) == 4);
  writer_.append(ids.data(), ids.size_bytes());
}

ReferenceLogits::ReferenceLogits(const std::filesystem::path& path)
    : path_(path.string()), file_(open_reference(path)) {
  const auto find = [&](const char* name, DType dtype, std::size_t rank) {
    const auto found = file_.tensors().find(name);
    if (found == file_.tensors().end())
      fail(ErrorCode::usage, "--against: {}: expected a tensor {}, found none; {}", path_, name, kRemedy);
    const TensorView& view = found->second;
    if (view.dtype != dtype || view.shape.size() != rank) {
      fail(ErrorCode::usage, "--against: {}: {}: expected {} with {} axes, found {} {}; {}", path_, name,
          name_of(dtype), rank, name_of(view.dtype), describe_shape(view.shape), kRemedy);
    }
    return &view;
  };
  const TensorView* ids = find("ids", DType::i32, 1);
  logits_ = find("logits", DType::f32, 2);
  if (logits_->shape[0] != ids->shape[0]) {
    fail(ErrorCode::checkpoint, "--against: {}: expected a row of logits for each of {} ids, found {}; write it again",
        path_, ids->shape[0], describe_shape(logits_->shape));
  }
  ids_.resize(ids->bytes / sizeof(TokenId));
  if (!ids_.empty()) std::memcpy(ids_.data(), ids->data, ids->bytes);
  row_.resize(static_cast<std::size_t>(logits_->shape[1]));
  const std::string window = value_of(file_, "foresay_window");
  window_ = parse_number<int>(window).value_or(0);
  if (window_ < 2) {
    fail(ErrorCode::usage, "--against: {}: expected a window of 2 or more in the metadata, found \"{}\"; {}", path_,
        window, kRemedy);
  }
  lane_ = value_of(file_, "foresay_lane");
}

void ReferenceLogits::expect(std::span<const TokenId> ids, int vocab) const {
  const auto [mine, theirs] = std::ranges::mismatch(ids, ids_);
  const auto at = mine - ids.begin();
  if (mine != ids.end() && theirs != ids_.end()) {
    fail(ErrorCode::usage,
        "--against: {}: expected the same ids, found {} instead of {} at token {}; score the text "
        "of that run with the same tokenizer",
        path_, *theirs, *mine, at);
  }
  if (ids.size() != ids_.size()) {
    fail(ErrorCode::usage,
        "--against: {}: expected {} ids, found {}, the first {} of them equal; score the text of "
        "that run",
        path_, ids.size(), ids_.size(), at);
  }
  if (row_.size() != static_cast<std::size_t>(vocab)) {
    fail(ErrorCode::usage,
        "--against: {}: logits: expected rows of {}, the vocabulary of this checkpoint, found {}; "
        "the run was made with another model",
        path_, vocab, describe_shape(logits_->shape));
  }
}

LogRow ReferenceLogits::row(std::size_t token) {
  const std::size_t bytes = row_.size() * sizeof(float);
  std::memcpy(row_.data(), logits_->data + token * bytes, bytes);
  std::string problem;
  const auto row = log_row(row_, problem);
  if (!row) {
    fail(ErrorCode::checkpoint, "--against: {}: logits: row {}: {}; the file is damaged, write it again", path_, token,
        problem);
  }
  return *row;
}

}  // namespace foresay::cli
