#include "checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "checkpoint/json_text.h"
#include "checkpoint/mapped_file.h"

namespace foresay {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian and used in place");

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kLargestHeader = 100'000'000;  // the limit of the reference implementation
constexpr std::string_view kLfsPointer = "version https://git-lfs";

/// Where a tensor lies, as its header entry says; offsets count from the end of the header.
struct Entry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

/// Reads one file's header; keeps what every message needs.
class HeaderReader {
 public:
  HeaderReader(const MappedFile& file, std::string path) : file_(file), path_(std::move(path)) {}

  /// Entries by rising offset. Fills `metadata`.
  std::vector<Entry> read(std::map<std::string, std::string>& metadata) {
    const auto header = parse_json_object(header_text(), "safetensors", path_, {.depth = 8, .duplicate_keys = false});
    std::vector<Entry> entries;
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__") {
        read_metadata(value, metadata);
      } else {
        entries.push_back(read_entry(name, value));
      }
    }
    check_layout(entries);
    return entries;
  }

  [[nodiscard]] std::size_t data_offset() const { return data_offset_; }

 private:
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::checkpoint, "[safetensors] {}: {}", path_, fmt::format(format, std::forward<Args>(args)...));
  }

  std::string_view header_text() {
    const auto text = file_.text();
    if (text.empty()) refuse("expected a safetensors file, found an empty file; download it again");
    if (text.starts_with(kLfsPointer)) {
      refuse("expected weights, found a Git LFS pointer; fetch the file itself with `git lfs pull`");
    }
    if (text.size() < kLengthBytes) {
      refuse("expected at least {} bytes, found {}; the file is cut off, download it again", kLengthBytes, text.size());
    }
    std::uint64_t length = 0;
    std::memcpy(&length, text.data(), kLengthBytes);
    if (length > kLargestHeader) {
      refuse(
          "expected a header of at most {} bytes, found a length of {}; this is no safetensors file or a damaged one, "
          "download it again",
          kLargestHeader, length);
    }
    const auto rest = text.size() - kLengthBytes;
    if (length > rest) {
      refuse(
          "expected a header of {} bytes, found a file with {} bytes after the length: at least {} bytes are missing; "
          "download it again",
          length, rest, length - rest);
    }
    data_offset_ = kLengthBytes + length;
    return text.substr(kLengthBytes, length);
  }

  void read_metadata(const nlohmann::json& value, std::map<std::string, std::string>& metadata) const {
    if (!value.is_object()) refuse("__metadata__: expected an object of strings, found {}", describe_json(value));
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) refuse("__metadata__: {}: expected a string, found {}", key, describe_json(text));
      metadata[key] = text.get<std::string>();
    }
  }

  /// Whole numbers >= 0 that fit int64; the parser keeps such numbers as unsigned.
  std::vector<std::int64_t> read_sizes(const std::string& name, const nlohmann::json& entry, const char* key) const {
    const auto found = entry.find(key);
    if (found == entry.end() || !found->is_array()) {
      refuse("{}: {}: expected an array of numbers, found {}; download it again", name, key,
          found == entry.end() ? "none" : describe_json(*found));
    }
    std::vector<std::int64_t> sizes;
    for (const auto& item : *found) {
      if (!item.is_number_unsigned() ||
          item.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        refuse("{}: {}: expected whole numbers from 0 up, found {}; download it again", name, key, describe_json(item));
      }
      sizes.push_back(item.get<std::int64_t>());
    }
    return sizes;
  }

  Entry read_entry(const std::string& name, const nlohmann::json& value) const {
    if (!value.is_object()) refuse("{}: expected an object, found {}; download it again", name, describe_json(value));
    Entry entry;
    entry.name = name;
    const auto dtype = value.find("dtype");
    if (dtype == value.end() || !dtype->is_string())
      refuse("{}: expected a dtype, found none; download it again", name);
    const auto known = dtype_from_name(dtype->get<std::string>());
    if (!known) {
      refuse("{}: expected a known dtype, found {}; use a checkpoint without this tensor", name, describe_json(*dtype));
    }
    entry.dtype = *known;
    entry.shape = read_sizes(name, value, "shape");
    const auto offsets = read_sizes(name, value, "data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1]) {
      refuse("{}: expected data_offsets [begin, end], found {}; download it again", name,
          describe_json(value["data_offsets"]));
    }
    entry.begin = static_cast<std::uint64_t>(offsets[0]);
    entry.end = static_cast<std::uint64_t>(offsets[1]);

    std::int64_t bytes = static_cast<std::int64_t>(size_of(entry.dtype));
    for (const auto extent : entry.shape) {
      if (__builtin_mul_overflow(bytes, extent, &bytes)) {
        refuse(
            "{}: expected a shape that fits in memory, found {}; download it again", name, describe_shape(entry.shape));
      }
    }
    if (static_cast<std::uint64_t>(bytes) != entry.end - entry.begin) {
      refuse("{}: expected {} bytes for {} {}, found offsets {} to {}; the header is damaged, download it again", name,
          bytes, name_of(entry.dtype), describe_shape(entry.shape), entry.begin, entry.end);
    }
    return entry;
  }

  /// Sorts by offset. Unused bytes between tensors are allowed; shared ones are not.
  void check_layout(std::vector<Entry>& entries) const {
    std::sort(entries.begin(), entries.end(),
        [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
    const Entry* previous = nullptr;
    std::uint64_t data_end = 0;
    for (const auto& entry : entries) {
      if (entry.begin == entry.end) continue;
      if (previous != nullptr && entry.begin < previous->end) {
        refuse("expected tensors that share no bytes, found {} and {} overlapping; download it again", previous->name,
            entry.name);
      }
      previous = &entry;
      data_end = entry.end;
    }
    const auto available = file_.size() - data_offset_;
    if (data_end > available) {
      refuse(
          "expected {} bytes of tensors, found {}: {} bytes are missing; the download was cut off, download it again",
          data_end, available, data_end - available);
    }
  }

  const MappedFile& file_;
  std::string path_;
  std::size_t data_offset_ = 0;
};

}  // namespace

SafetensorsFile SafetensorsFile::open(
    const std::filesystem::path& path, const std::function<bool(const std::string&)>& wanted) {
  const auto mapped = MappedFile::open(path, "safetensors");
  SafetensorsFile file;
  HeaderReader reader(*mapped, path.string());
  for (auto& entry : reader.read(file.metadata_)) {
    if (wanted && !wanted(entry.name)) {
      file.left_out_.push_back(std::move(entry.name));
      continue;
    }
    TensorView view{.name = entry.name,
        .file = path.string(),
        .dtype = entry.dtype,
        .shape = std::move(entry.shape),
        .data = nullptr,
        .bytes = entry.end - entry.begin,
        .owner = mapped};
    // An empty tensor may claim any offset: it gets the start of the data, which is always inside the mapping.
    view.data = mapped->data() + reader.data_offset() + (view.bytes == 0 ? 0 : entry.begin);
    file.tensors_.emplace(std::move(entry.name), std::move(view));
  }
  return file;
}

}  // namespace foresay
