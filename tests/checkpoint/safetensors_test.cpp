#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "checkpoint/expect_error.h"
#include "fixtures/owned_tensor.h"
#include "fixtures/temp_dir.h"

namespace foresay {
namespace {

std::string with_length(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + data;
}

class Safetensors : public ::testing::Test {
 protected:
  SafetensorsFile open_bytes(const std::string& bytes) {
    write_text(path_, bytes);
    return SafetensorsFile::open(path_);
  }
  SafetensorsFile open_header(const std::string& header, const std::string& data = "") {
    return open_bytes(with_length(header, data));
  }
  /// The file must be refused with its path and these words.
  void expect_refused(const std::string& bytes, std::vector<std::string> parts) {
    parts.insert(parts.begin(), {"[safetensors] ", path_.string()});
    expect_error(ErrorCode::checkpoint, parts, [&] { open_bytes(bytes); });
  }
  void expect_header_refused(const std::string& header, const std::vector<std::string>& parts) {
    expect_refused(with_length(header, std::string(16, 'x')), parts);
  }

  TempDir dir_;
  std::filesystem::path path_ = dir_.path() / "x.safetensors";
};

TEST_F(Safetensors, WhatIsWrittenIsRead) {
  const std::vector<float> values = {1, -2, 3, 4, 5, 6};
  TensorMap tensors;
  tensors["b"] = OwnedTensor::of(DType::bf16, {3}, std::vector<float>{1, 2, 3});
  tensors["a.weight"] = OwnedTensor::of(DType::f32, {2, 3}, values);
  tensors["empty"] = OwnedTensor::of(DType::f32, {0, 7}, {});
  tensors["scalar"] = OwnedTensor::of(DType::f16, {}, std::vector<float>{0.5f});
  tensors["ü"] = OwnedTensor{DType::u8, {5}, std::vector<std::byte>(5)};
  write_tensors(path_, tensors, {{"format", "pt"}, {"note", "\"x\"\n"}});
  const auto file = SafetensorsFile::open(path_);
  ASSERT_EQ(file.tensors().size(), 5u);
  EXPECT_EQ(file.metadata().at("note"), "\"x\"\n");
  const auto& a = file.tensors().at("a.weight");
  EXPECT_EQ(a.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(a.to_float(), values);
  EXPECT_EQ(a.file, path_.string());
  EXPECT_EQ(a.name, "a.weight");
  EXPECT_EQ(file.tensors().at("b").to_float(), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(file.tensors().at("scalar").to_float(), (std::vector<float>{0.5f}));
  EXPECT_TRUE(file.tensors().at("empty").to_float().empty());
  for (const auto& [name, view] : file.tensors()) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data) % size_of(view.dtype), 0u) << name;
  }
}

TEST_F(Safetensors, AViewOutlivesTheFileObjectAndTheFile) {
  write_tensors(path_, {{"a", OwnedTensor::of(DType::f32, {1}, std::vector<float>{7})}});
  const auto view = SafetensorsFile::open(path_).tensors().at("a");
  std::filesystem::remove(path_);
  EXPECT_EQ(view.to_float(), (std::vector<float>{7}));
}

TEST_F(Safetensors, MisalignedTensorsAreViewedWhereTheyLie) {  // MLX pads no header: a copy would double the model
  const std::vector<float> values = {1.5f, -2.5f};
  std::string data(8, '\0');
  std::memcpy(data.data(), values.data(), 8);
  for (std::size_t padding = 0; padding < 8; ++padding) {
    const auto header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})" + std::string(padding, ' ');
    const auto file = open_header(header, data);
    const auto& view = file.tensors().at("a");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data) % 8, (8 + header.size()) % 8);  // a mapping starts a page
    EXPECT_EQ(view.to_float(), values);
  }
}

TEST_F(Safetensors, EveryFloatTypeIsReadAtAnyAddress) {
  const std::vector<float> values = {1.5f, -2.5f, 0.0f, 4096.0f};
  std::string wide(8 * values.size(), '\0');
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    std::memcpy(wide.data() + 8 * i, &value, 8);
  }
  const auto as_text = [&](DType type) {
    const auto bytes = OwnedTensor::of(type, {4}, values).bytes;
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  for (const auto& [name, data] : {std::pair<std::string, std::string>{"F64", wide}, {"F32", as_text(DType::f32)},
           {"F16", as_text(DType::f16)}, {"BF16", as_text(DType::bf16)}}) {
    for (std::size_t padding = 0; padding < 8; ++padding) {
      const auto file = open_header(R"({"a":{"dtype":")" + name + R"(","shape":[4],"data_offsets":[0,)" +
                                        std::to_string(data.size()) + "]}}" + std::string(padding, ' '),
          data);
      EXPECT_EQ(file.tensors().at("a").to_float(), values) << name;
    }
  }
}

TEST_F(Safetensors, TensorsThatAreNotWantedAreOnlyListed) {
  write_tensors(path_, {{"a", OwnedTensor::of(DType::f32, {1}, std::vector<float>{7})},
                           {"v", OwnedTensor::of(DType::f32, {1}, std::vector<float>{8})}});
  const auto file = SafetensorsFile::open(path_, [](const std::string& name) { return name != "v"; });
  EXPECT_EQ(file.tensors().size(), 1u);
  EXPECT_EQ(file.left_out(), (std::vector<std::string>{"v"}));
}

TEST_F(Safetensors, FilesThatAreNoSafetensorsAreRefused) {
  expect_refused("", {"found an empty file", "download it again"});
  expect_refused("1234567", {"at least 8 bytes", "found 7"});
  expect_refused(
      "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", {"Git LFS pointer", "git lfs pull"});
  expect_refused(std::string("\x50\0\0\0\0\0\0\0{}", 10), {"header of 80 bytes", "at least 78 bytes are missing"});
  expect_refused(std::string(64, '\xff'), {"at most 100000000 bytes", "found a length of 18446744073709551615"});
  expect_refused("PK\x03\x04 this is a zip archive", {"header of at most"});
  expect_refused(std::string(8, '\0'), {"expected valid JSON"});
}

TEST_F(Safetensors, HeadersThatAreNoObjectAreRefused) {
  for (const std::string header : {"[]", "5", "\"x\"", "null"})
    expect_header_refused(header, {"expected a JSON object"});
  for (const std::string header :
      {"", "{", "{]", "{\"a\"", "not json", "{\"a\":NaN}", "{\"a\":1}x", "{\"\\ud800\":1}"}) {
    expect_header_refused(header, {"expected valid JSON", "line 1, column"});
  }
  expect_header_refused("{\"\xc3\x28\":1}", {"expected valid JSON", "UTF-8"});
  expect_header_refused("{\"a\":1e999}", {"expected valid JSON"});
  expect_header_refused(R"({"a":5})", {"a: expected an object, found 5"});
  expect_header_refused(R"({"__metadata__":[]})", {"__metadata__", "object of strings"});
  expect_header_refused(R"({"__metadata__":{"k":1}})", {"__metadata__: k", "string"});
}

TEST_F(Safetensors, DeepNestingIsRefusedWithoutRecursion) {
  for (const std::size_t depth : {9u, 1000u, 1000000u}) {
    expect_header_refused("{\"a\":" + std::string(depth, '['), {"nested levels"});
    expect_header_refused("{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}", {"nested levels"});
  }
  std::string objects;
  for (int i = 0; i < 1000; ++i) objects += "{\"a\":";
  expect_header_refused(objects + "1" + std::string(1000, '}'), {"nested levels"});
}

TEST_F(Safetensors, ANameMayHoldBracketsAndQuotes) {
  const std::string name(200, '[');
  const auto file = open_header("{\"\\\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "x");
  EXPECT_TRUE(file.tensors().contains("\"" + name));
}

TEST_F(Safetensors, DuplicateNamesAreRefused) {
  const std::string entry = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  expect_header_refused("{\"a\":" + entry + ",\"a\":" + entry + "}", {"every key once", "\"a\" twice"});
  expect_header_refused(R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", {"\"dtype\" twice"});
}

TEST_F(Safetensors, EntriesThatContradictThemselvesAreRefused) {
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return "{\"t\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
  };
  expect_header_refused(entry("\"F31\"", "[1]", "[0,4]"), {"t: expected a known dtype", "F31"});
  expect_header_refused(entry("7", "[1]", "[0,4]"), {"t: expected a dtype"});
  expect_header_refused(R"({"t":{"shape":[1],"data_offsets":[0,4]}})", {"t: expected a dtype, found none"});
  expect_header_refused(R"({"t":{"dtype":"F32","data_offsets":[0,4]}})", {"t: shape", "none"});
  expect_header_refused(R"({"t":{"dtype":"F32","shape":[1]}})", {"t: data_offsets", "none"});
  expect_header_refused(entry("\"F32\"", "[-1]", "[0,4]"), {"t: shape", "-1"});
  expect_header_refused(entry("\"F32\"", "[1.0]", "[0,4]"), {"t: shape", "1.0"});
  expect_header_refused(entry("\"F32\"", "[true]", "[0,4]"), {"t: shape", "true"});
  expect_header_refused(entry("\"F32\"", "{}", "[0,4]"), {"t: shape"});
  expect_header_refused(entry("\"F32\"", "[18446744073709551615]", "[0,4]"), {"t: shape"});
  expect_header_refused(entry("\"F32\"", "[99999999999999999999999]", "[0,4]"), {"t: shape"});
  expect_header_refused(entry("\"F32\"", "[4294967296,4294967296]", "[0,4]"), {"t: expected a shape that fits"});
  expect_header_refused(entry("\"F32\"", "[4611686018427387905]", "[0,4]"), {"t: expected a shape that fits"});
  expect_header_refused(entry("\"F32\"", "[1]", "[4,0]"), {"[begin, end]"});
  expect_header_refused(entry("\"F32\"", "[1]", "[0]"), {"[begin, end]"});
  expect_header_refused(entry("\"F32\"", "[1]", "[0,4,8]"), {"[begin, end]"});
  expect_header_refused(entry("\"F32\"", "[1]", "[0,5]"), {"t: expected 4 bytes for F32 [1], found offsets 0 to 5"});
  expect_header_refused(entry("\"F32\"", "[2,2]", "[0,8]"), {"expected 16 bytes"});
  expect_header_refused(
      entry("\"U8\"", "[9223372036854775807]", "[0,9223372036854775807]"), {"bytes are missing", "download it again"});
}

TEST_F(Safetensors, OverlappingTensorsAreRefusedByBothNames) {
  expect_header_refused(
      R"({"first":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"second":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
      {"first and second overlapping"});
  expect_header_refused(
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
      {"a and b overlapping"});
}

TEST_F(Safetensors, ATruncatedFileSaysHowManyBytesAreMissing) {
  const std::string header = R"({"a":{"dtype":"U8","shape":[100],"data_offsets":[0,100]}})";
  EXPECT_EQ(open_header(header, std::string(100, 'x')).tensors().size(), 1u);
  expect_refused(
      with_length(header, std::string(63, 'x')), {"expected 100 bytes", "found 63", "37 bytes are missing", "again"});
}

TEST_F(Safetensors, FoldersPipesAndUnreadableFilesAreRefusedAtOnce) {
  expect_error(ErrorCode::checkpoint, {dir_.path().string(), "found a folder"},
      [&] { (void)SafetensorsFile::open(dir_.path()); });
  expect_error(ErrorCode::checkpoint, {"none.safetensors", "No such file"},
      [&] { (void)SafetensorsFile::open(dir_.path() / "none.safetensors"); });
  const auto pipe = dir_.path() / "pipe.safetensors";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error(ErrorCode::checkpoint, {"pipe.safetensors", "pipe"}, [&] { (void)SafetensorsFile::open(pipe); });
  expect_error(ErrorCode::checkpoint, {"/dev/zero", "device"}, [&] { (void)SafetensorsFile::open("/dev/zero"); });
  write_text(path_, "x");
  std::filesystem::permissions(path_, std::filesystem::perms::none);
  if (::geteuid() != 0) {  // root reads everything
    expect_error(ErrorCode::checkpoint, {"Permission denied"}, [&] { (void)SafetensorsFile::open(path_); });
  }
}

// Opening must either work or throw Error, and every view must lie inside the file: reading them all proves it under a
// sanitizer.
void open_and_touch(const std::filesystem::path& path) {
  try {
    unsigned sum = 0;
    const auto file = SafetensorsFile::open(path);
    for (const auto& [name, view] : file.tensors()) {
      for (std::size_t i = 0; i < view.bytes; ++i) sum += static_cast<unsigned>(view.data[i]);
    }
    EXPECT_GE(sum, 0u);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::checkpoint) << error.what();
  }
}

class DamagedSafetensors : public Safetensors {
 protected:
  void SetUp() override {
    TensorMap tensors;
    tensors["layers.0.weight"] = OwnedTensor::of(DType::bf16, {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
    tensors["norm"] = OwnedTensor::of(DType::f32, {2}, std::vector<float>{1, 2});
    tensors["none"] = OwnedTensor::of(DType::f32, {0}, {});
    write_tensors(path_, tensors);
    bytes_ = read_text(path_);
  }

  std::string bytes_;
};

TEST_F(DamagedSafetensors, EveryTruncationIsRefusedOrOpens) {
  for (std::size_t size = 0; size < bytes_.size(); ++size) {
    write_text(path_, bytes_.substr(0, size));
    expect_error(ErrorCode::checkpoint, {path_.string()}, [&] { (void)SafetensorsFile::open(path_); });
  }
}

TEST_F(DamagedSafetensors, EveryChangedByteIsRefusedOrOpens) {
  for (std::size_t at = 0; at < bytes_.size(); ++at) {
    for (const int flip : {0x01, 0x04, 0x10, 0x20, 0x80, 0xff}) {
      auto damaged = bytes_;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      write_text(path_, damaged);
      open_and_touch(path_);
    }
  }
}

TEST_F(DamagedSafetensors, WritingReplacesAFileWholeAndLeavesNothingBeside) {
  write_tensors(path_, {{"a", OwnedTensor::of(DType::f32, {1}, std::vector<float>{7})}});
  EXPECT_EQ(SafetensorsFile::open(path_).tensors().size(), 1u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_.path()), {}), 1);
}

TEST_F(DamagedSafetensors, AFailedWriteKeepsTheOldFile) {
  expect_error(ErrorCode::capacity, {"no-such-folder", "No such file"},
      [&] { write_safetensors(dir_.path() / "no-such-folder" / "x.safetensors", {}); });
  const auto folder = dir_.path() / "taken.safetensors";
  std::filesystem::create_directory(folder);
  expect_error(ErrorCode::capacity, {"taken.safetensors", "rename"}, [&] { write_safetensors(folder, {}); });
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_.path()), {}), 2);
  EXPECT_EQ(read_text(path_), bytes_);
}

/// More than one piece, with an end that is no multiple of one; beside a tensor whose data is there.
TEST_F(DamagedSafetensors, ATensorMayBeMadeWhileItIsWritten) {
  const std::vector<float> given = {1, 2, 3};
  constexpr std::int64_t kBytes = (3 << 20) + 5;
  std::uint64_t expected_offset = 0;
  const TensorToWrite made = {
      "made", DType::u8, {kBytes}, nullptr, [&](std::span<std::byte> piece, std::uint64_t offset) {
        EXPECT_EQ(offset, expected_offset);
        EXPECT_EQ(offset % 8, 0u);
        expected_offset += piece.size();
        for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<std::byte>((offset + i) % 251);
      }};
  write_safetensors(path_, {made, {"given", DType::f32, {3}, given.data()}});
  EXPECT_EQ(expected_offset, static_cast<std::uint64_t>(kBytes));

  const auto file = SafetensorsFile::open(path_);
  EXPECT_EQ(file.tensors().at("given").to_float(), given);
  const TensorView& read = file.tensors().at("made");
  ASSERT_EQ(read.bytes, static_cast<std::size_t>(kBytes));
  for (std::size_t i = 0; i < read.bytes; i += 4099) EXPECT_EQ(read.data[i], static_cast<std::byte>(i % 251)) << i;
  EXPECT_EQ(read.data[read.bytes - 1], static_cast<std::byte>((read.bytes - 1) % 251));
}

}  // namespace
}  // namespace foresay
