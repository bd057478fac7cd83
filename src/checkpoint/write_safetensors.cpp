#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <utility>

#include "base/error.h"
#include "checkpoint/json_text.h"
#include "checkpoint/safetensors.h"

namespace foresay {
namespace {

constexpr std::size_t kPiece = 1 << 20;  // bytes of a tensor that is made while it is written

/// The 8 length bytes and the JSON, padded with spaces so that the data starts at a multiple of 8.
std::string make_header(
    const std::vector<const TensorToWrite*>& tensors, const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const auto* tensor : tensors) {
    const auto end = offset + tensor->bytes();
    header[tensor->name] = {
        {"dtype", name_of(tensor->dtype)}, {"shape", tensor->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string json = header.dump();
  json.append((8 - json.size() % 8) % 8, ' ');
  const std::uint64_t length = json.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + json;
}

/// A file under a temporary name; removed unless `rename_to` succeeded.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target) : target_(target) {
    static std::atomic<unsigned> count{0};  // two threads may write to one folder
    path_ = target;
    path_ += fmt::format(".{}-{}.part", ::getpid(), count++);
    file_ = std::fopen(path_.c_str(), "wb");
    if (file_ == nullptr) refuse("create it");
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (file_ != nullptr) std::fclose(file_);
    if (!renamed_) std::remove(path_.c_str());
  }

  void write(const void* data, std::size_t bytes) {
    if (bytes != 0 && std::fwrite(data, 1, bytes, file_) != bytes) refuse("write it");
  }

  void rename_to_target() {
    const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;  // the last bytes are written here
    if (!closed) refuse("write it");
    if (std::rename(path_.c_str(), target_.c_str()) != 0) refuse("rename it into place");
    renamed_ = true;
  }

 private:
  [[noreturn]] void refuse(const char* action) {
    const std::string reason = std::strerror(errno);
    if (file_ != nullptr) std::fclose(std::exchange(file_, nullptr));
    std::remove(path_.c_str());  // also from the constructor, whose destructor never runs
    fail(ErrorCode::capacity, "[safetensors] {}: expected to {}, found: {}; free disk space or choose another folder",
        target_.string(), action, reason);
  }

  std::filesystem::path target_, path_;
  std::FILE* file_ = nullptr;
  bool renamed_ = false;
};

}  // namespace

std::uint64_t TensorToWrite::bytes() const {
  std::uint64_t bytes = size_of(dtype);
  for (const auto extent : shape) bytes *= static_cast<std::uint64_t>(extent);
  return bytes;
}

void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors,
    const std::map<std::string, std::string>& metadata) {
  std::set<std::string_view> names;
  std::vector<const TensorToWrite*> order;
  for (const auto& tensor : tensors) {
    if (!names.insert(tensor.name).second || tensor.name == "__metadata__") {
      fail(ErrorCode::internal, "[safetensors] {}: expected tensor names once each, found {} again or reserved",
          path.string(), tensor.name);
    }
    order.push_back(&tensor);
  }
  // Widest elements first: every tensor is then aligned for its type without gaps, which the format forbids.
  std::stable_sort(order.begin(), order.end(),
      [](const TensorToWrite* a, const TensorToWrite* b) { return size_of(a->dtype) > size_of(b->dtype); });
  TemporaryFile file(path);
  const auto header = make_header(order, metadata);
  file.write(header.data(), header.size());
  std::vector<std::byte> piece;
  for (const auto* tensor : order) {
    const std::uint64_t bytes = tensor->bytes();
    if (tensor->data != nullptr || !tensor->make) {
      file.write(tensor->data, bytes);
      continue;
    }
    for (std::uint64_t offset = 0; offset < bytes; offset += kPiece) {
      piece.resize(std::min<std::uint64_t>(kPiece, bytes - offset));
      tensor->make(piece, offset);
      file.write(piece.data(), piece.size());
    }
  }
  file.rename_to_target();
}

}  // namespace foresay
