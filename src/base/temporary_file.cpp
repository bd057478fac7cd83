#include "base/temporary_file.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace foresay {

TemporaryFile::TemporaryFile(std::filesystem::path target, std::string_view area)
    : target_(std::move(target)), path_(target_), area_(area) {
  static std::atomic<unsigned> count{0};  // two threads may write to one folder
  path_ += fmt::format(".{}-{}.part", ::getpid(), count++);
  file_ = std::fopen(path_.c_str(), "wb");
  if (file_ == nullptr) refuse("create it");
}

TemporaryFile::~TemporaryFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (!published_) std::remove(path_.c_str());
}

void TemporaryFile::write(const void* data, std::size_t bytes) {
  if (bytes != 0 && std::fwrite(data, 1, bytes, file_) != bytes) refuse("write it");
}

void TemporaryFile::publish() {
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;  // the last bytes are written here
  if (!closed) refuse("write it");
  if (std::rename(path_.c_str(), target_.c_str()) != 0) refuse("rename it into place");
  published_ = true;
}

void TemporaryFile::refuse(const char* action) {
  const std::string reason = std::strerror(errno);
  if (file_ != nullptr) std::fclose(std::exchange(file_, nullptr));
  std::remove(path_.c_str());  // also from the constructor, whose destructor never runs
  fail(ErrorCode::capacity, "[{}] {}: expected to {}, found: {}; free disk space or choose another folder", area_,
      target_.string(), action, reason);
}

}  // namespace foresay
