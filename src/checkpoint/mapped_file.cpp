#include "checkpoint/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace foresay {
namespace {

/// Closes a file descriptor; a mapping outlives its descriptor.
struct Descriptor {
  int fd = -1;
  explicit Descriptor(int fd_) : fd(fd_) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path, std::string_view area) {
  // O_NONBLOCK: opening a pipe without a writer would otherwise wait for ever. It means nothing for regular files.
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.fd < 0) {
    fail(ErrorCode::checkpoint,
        "[{}] {}: expected a readable file, found: {}; check that it exists and its permissions", area, path.string(),
        std::strerror(errno));
  }
  struct stat status{};
  if (::fstat(descriptor.fd, &status) != 0) {
    fail(ErrorCode::checkpoint, "[{}] {}: expected a readable file, found: {}", area, path.string(),
        std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    fail(ErrorCode::checkpoint, "[{}] {}: expected a regular file, found a {}; replace it with the model's own file",
        area, path.string(), S_ISDIR(status.st_mode) ? "folder" : "pipe, socket or device");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0)
    return std::shared_ptr<const MappedFile>(new MappedFile(nullptr, 0));  // an empty range cannot be mapped
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor.fd, 0);
  if (data == MAP_FAILED) {
    const auto code = errno == ENOMEM ? ErrorCode::capacity : ErrorCode::checkpoint;
    fail(code, "[{}] {}: expected to map {} bytes, found: {}", area, path.string(), size, std::strerror(errno));
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const std::byte*>(data), size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace foresay
