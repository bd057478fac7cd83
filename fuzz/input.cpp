#include "fuzz/input.h"

#include <unistd.h>

#include <cstring>
#include <fstream>

namespace foresay::fuzz {

namespace fs = std::filesystem;

Folder::Folder(std::string_view name) {
  const fs::path memory = "/dev/shm";
  std::error_code ignored;
  const fs::path base = fs::is_directory(memory, ignored) ? memory : fs::temp_directory_path();
  path_ = base / ("foresay-fuzz-" + std::string(name) + "-" + std::to_string(::getpid()));
  fs::create_directories(path_);
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void Folder::write(const char* file, Bytes content) const {
  std::ofstream out(path_ / file, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  if (!out.flush()) broken("the folder can be written", file);
}

void Folder::write(const char* file, std::string_view content) const {
  write(file, Bytes(reinterpret_cast<const std::uint8_t*>(content.data()), content.size()));
}

std::string small_weights(bool head) {
  std::string header = R"({"model.embed_tokens.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]})";
  if (head) header += R"(,"mtp.norm.weight":{"dtype":"F32","shape":[2],"data_offsets":[16,24]})";
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + std::string(head ? 24 : 16, '\0');
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int more = lead < 0x80 ? 0 : lead >> 5 == 6 ? 1 : lead >> 4 == 14 ? 2 : lead >> 3 == 30 ? 3 : -1;
    if (more < 0 || i + static_cast<std::size_t>(more) >= text.size() + (more == 0 ? 1u : 0u)) return false;
    std::uint32_t value = more == 0 ? lead : lead & (0x3f >> more);
    for (int k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
      if (next >> 6 != 2) return false;
      value = value << 6 | (next & 0x3f);
    }
    constexpr std::uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};  // shorter forms of a smaller value are not UTF-8
    if (value < kLeast[more] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return false;
    i += static_cast<std::size_t>(more) + 1;
  }
  return true;
}

}  // namespace foresay::fuzz
