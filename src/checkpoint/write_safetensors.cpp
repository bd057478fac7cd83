#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "checkpoint/json_text.h"
#include "checkpoint/safetensors.h"

namespace foresay {
namespace {

constexpr std::size_t kPiece = 1 << 20;  // bytes of a tensor that is made while it is written

/// The 8 length bytes and the JSON, padded with spaces so that the data starts at a multiple of 8.
std::string make_header(const std::vector<TensorToWrite>& tensors, const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const auto& tensor : tensors) {
    const auto end = offset + tensor.bytes();
    header[tensor.name] = {{"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string json = header.dump();
  json.append((8 - json.size() % 8) % 8, ' ');
  const std::uint64_t length = json.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + json;
}

}  // namespace

std::uint64_t TensorToWrite::bytes() const {
  std::uint64_t bytes = size_of(dtype);
  for (const auto extent : shape) bytes *= static_cast<std::uint64_t>(extent);
  return bytes;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, const std::vector<TensorToWrite>& layout,
    const std::map<std::string, std::string>& metadata)
    : file_(path, "safetensors") {
  std::set<std::string_view> names;
  std::size_t widest = sizeof(double);
  for (const auto& tensor : layout) {
    if (!names.insert(tensor.name).second || tensor.name == "__metadata__") {
      fail(ErrorCode::internal, "[safetensors] {}: expected tensor names once each, found {} again or reserved",
          path.string(), tensor.name);
    }
    if (size_of(tensor.dtype) > widest)
      fail(ErrorCode::internal, "[safetensors] {}: {} comes after narrower elements", path.string(), tensor.name);
    widest = size_of(tensor.dtype);
    outstanding_ += tensor.bytes();
  }
  const std::string header = make_header(layout, metadata);
  file_.write(header.data(), header.size());
}

void SafetensorsWriter::append(const void* data, std::size_t bytes) {
  if (bytes > outstanding_) fail(ErrorCode::internal, "[safetensors] {} bytes more than were declared", bytes);
  file_.write(data, bytes);
  outstanding_ -= bytes;
}

void SafetensorsWriter::finish() {
  if (outstanding_ != 0) fail(ErrorCode::internal, "[safetensors] {} bytes were declared and not given", outstanding_);
  file_.publish();
}

void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors,
    const std::map<std::string, std::string>& metadata) {
  std::vector<TensorToWrite> order = tensors;
  // Widest elements first: every tensor is then aligned for its type without gaps, which the format forbids.
  std::ranges::stable_sort(order, std::greater{}, [](const TensorToWrite& tensor) { return size_of(tensor.dtype); });
  SafetensorsWriter writer(path, order, metadata);
  std::vector<std::byte> piece;
  for (const auto& tensor : order) {
    const std::uint64_t bytes = tensor.bytes();
    if (tensor.data != nullptr || !tensor.make) {
      writer.append(tensor.data, bytes);
      continue;
    }
    for (std::uint64_t offset = 0; offset < bytes; offset += kPiece) {
      piece.resize(std::min<std::uint64_t>(kPiece, bytes - offset));
      tensor.make(piece, offset);
      writer.append(piece.data(), piece.size());
    }
  }
  writer.finish();
}

}  // namespace foresay
