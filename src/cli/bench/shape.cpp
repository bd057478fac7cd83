// The table of shapes, and the cache of their random checkpoints.
#include "cli/bench/shape.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>

#include "base/cache_folder.h"
#include "base/error.h"
#include "cli/bench/shape_parts.h"
#include "cli/output.h"

namespace foresay::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 1;  // of what is written; another number makes every cached checkpoint anew
constexpr std::uint64_t kSmallFiles = 32u << 20;  // bytes of the JSON files, at most

constexpr Shape kShapes[] = {
    {"qwen3_5-tiny", 512, 8, 4, 2, 128, 1024, 4, 4, 64, 32768},
    {"qwen3_5-0.8b", 1024, 24, 8, 2, 256, 3584, 16, 16, 128, 248320},
    {"qwen3_5-2b", 2048, 24, 8, 2, 256, 6144, 16, 16, 128, 248320},
    {"qwen3_5-4b", 2560, 32, 16, 4, 256, 9216, 16, 32, 128, 248320},
};

fs::path shapes_folder() {
  fs::path folder = cache_folder("shapes");
  if (!folder.empty()) return folder;
  fail(ErrorCode::usage, "--shape: expected HOME or XDG_CACHE_HOME to say where the checkpoint goes, found neither");
}

/// Held while a checkpoint is made: two processes do not write one folder, and one that dies lets go.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& file) : descriptor_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX) != 0) {
      fail(ErrorCode::capacity, "[bench] {}: expected to lock it, found: {}", file.string(), std::strerror(errno));
    }
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() { ::close(descriptor_); }

 private:
  int descriptor_;
};

std::string marker_text(const Shape& shape, const Packing& packing) {
  return fmt::format("random weights, version {}: {}\n", kVersion, packed_name(shape, packing));
}

/// A folder gets its name when it is whole; the marker also tells of one that an older program made.
bool is_whole(const fs::path& folder, const Shape& shape, const Packing& packing) {
  std::ifstream marker(folder / "made-by-bench");
  return std::string(std::istreambuf_iterator<char>(marker), {}) == marker_text(shape, packing);
}

std::uint64_t bytes_of(const std::vector<TensorToWrite>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), std::uint64_t{0},
      [](std::uint64_t sum, const TensorToWrite& tensor) { return sum + tensor.bytes(); });
}

void make(const fs::path& folder, const Shape& shape, const Packing& packing) {
  const auto trunk = random_trunk(shape, packing), head = random_head(shape, packing);
  const std::uint64_t weights = bytes_of(trunk) + bytes_of(head), needed = weights + kSmallFiles;
  const std::uint64_t free = fs::space(folder.parent_path()).available;
  if (free < needed) {
    fail(ErrorCode::capacity, "--shape: expected {} MB free in {}, found {} MB; free disk space or set XDG_CACHE_HOME",
        needed / 1'000'000, folder.parent_path().string(), free / 1'000'000);
  }
  say(fmt::format("note: making random weights once, {} MB: {}\n", weights / 1'000'000, folder.string()));
  fs::path part = folder;
  part += ".part";
  fs::remove_all(part);
  fs::create_directories(part / "mtp");
  write_configs(part, shape, packing);
  write_tokenizer(part, shape);
  write_safetensors(part / "model.safetensors", trunk, {{"format", "mlx"}});
  write_safetensors(part / "mtp" / "weights.safetensors", head, {{"format", "mlx"}});
  std::ofstream(part / "made-by-bench") << marker_text(shape, packing);
  fs::remove_all(folder);
  fs::rename(part, folder);
}

}  // namespace

std::span<const Shape> shapes() {
  return kShapes;
}

std::string packed_name(const Shape& shape, const Packing& packing) {
  const std::string name = fmt::format("{}-{}bit", shape.name, packing.bits);
  return packing.head_bits == packing.bits ? name : fmt::format("{}-head{}", name, packing.head_bits);
}

fs::path shape_folder(const Shape& shape, const Packing& packing) {
  fs::path folder = shapes_folder() / packed_name(shape, packing);
  if (is_whole(folder, shape, packing)) return folder;
  try {
    fs::create_directories(folder.parent_path());
    fs::path lock_file = folder;
    lock_file += ".lock";
    const FolderLock lock(lock_file);
    if (!is_whole(folder, shape, packing)) make(folder, shape, packing);
  } catch (const fs::filesystem_error& error) {
    fail(ErrorCode::capacity, "--shape: cannot make {}: {}; set XDG_CACHE_HOME to a folder that can be written",
        folder.string(), error.code().message());
  }
  return folder;
}

}  // namespace foresay::cli
