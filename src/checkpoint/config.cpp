#include "checkpoint/config.h"

#include <cmath>

#include "base/error.h"
#include "checkpoint/json_text.h"
#include "checkpoint/mapped_file.h"

namespace foresay {
namespace {

constexpr std::size_t kLargestConfig = 256u << 20;  // the largest known tokenizer_config.json is below 1 MB

[[noreturn]] void refuse(
    const Config& config, const std::string& key, const std::string& expected, const std::string& found) {
  fail(ErrorCode::checkpoint, "[config] {}: {}: expected {}, found {}; correct the file or download it again",
      config.where(), key, expected, found);
}

[[noreturn]] void refuse(const Config& config, const std::string& key, const std::string& expected) {
  refuse(config, key, expected, describe_json(config.json().at(key)));
}

/// The value an optional getter found, or the error of a required one.
template <typename T>
T required(std::optional<T> value, const Config& config, const std::string& key, const std::string& expected) {
  if (!value) refuse(config, key, expected, config.json().contains(key) ? "null" : "no such key");
  return *std::move(value);
}

std::string integer_words(int least, int most) {
  return fmt::format("an integer from {} to {}", least, most);
}
std::string number_words(double least, double most) {
  return fmt::format("a number from {} to {}", least, most);
}

}  // namespace

Config Config::read(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path, "config");
  if (file->size() > kLargestConfig) {
    fail(ErrorCode::checkpoint, "[config] {}: expected at most {} bytes of JSON, found {}; download it again",
        path.string(), kLargestConfig, file->size());
  }
  // Duplicate keys are allowed because the tools that write these files read them back that way.
  return {parse_json_object(file->text(), "config", path.string(), {.depth = 64, .duplicate_keys = true}),
      path.filename().string()};
}

bool Config::has(const std::string& key) const {
  const auto found = json_.find(key);
  return found != json_.end() && !found->is_null();
}

std::optional<double> Config::maybe_number(const std::string& key, double least, double most) const {
  if (!has(key)) return std::nullopt;
  const auto& value = json_.at(key);
  if (!value.is_number()) refuse(*this, key, number_words(least, most));  // booleans are no numbers here
  const auto number = value.get<double>();
  if (!(number >= least && number <= most)) refuse(*this, key, number_words(least, most));
  return number;
}

std::optional<int> Config::maybe_integer(const std::string& key, int least, int most) const {
  if (!has(key)) return std::nullopt;
  const auto& value = json_.at(key);
  if (!value.is_number()) refuse(*this, key, integer_words(least, most));
  const auto number = value.get<double>();  // exact for every int; tools write 1e6 or 10000000.0 for whole numbers
  if (!(number >= least && number <= most) || number != std::floor(number))
    refuse(*this, key, integer_words(least, most));
  return static_cast<int>(number);
}

std::optional<bool> Config::maybe_boolean(const std::string& key) const {
  if (!has(key)) return std::nullopt;
  if (!json_.at(key).is_boolean()) refuse(*this, key, "true or false");
  return json_.at(key).get<bool>();
}

std::optional<std::string> Config::maybe_string(const std::string& key) const {
  if (!has(key)) return std::nullopt;
  if (!json_.at(key).is_string()) refuse(*this, key, "a string");
  return json_.at(key).get<std::string>();
}

std::optional<Config> Config::maybe_object(const std::string& key) const {
  if (!has(key)) return std::nullopt;
  if (!json_.at(key).is_object()) refuse(*this, key, "an object");
  return Config(json_.at(key), where_ + ": " + key);
}

std::optional<std::vector<std::string>> Config::maybe_strings(const std::string& key) const {
  if (!has(key)) return std::nullopt;
  const auto& value = json_.at(key);
  if (!value.is_array()) refuse(*this, key, "an array of strings");
  std::vector<std::string> strings;
  for (const auto& item : value) {
    if (!item.is_string()) refuse(*this, key, "an array of strings", describe_json(item) + " in it");
    strings.push_back(item.get<std::string>());
  }
  return strings;
}

std::optional<std::vector<int>> Config::maybe_integers(const std::string& key, int least, int most) const {
  if (!has(key)) return std::nullopt;
  const std::string words = "an array of integers, each " + integer_words(least, most);
  const auto& value = json_.at(key);
  if (!value.is_array()) refuse(*this, key, words);
  std::vector<int> integers;
  for (const auto& item : value) {
    const Config one(nlohmann::json{{key, item}}, where_);
    if (!item.is_number_integer()) refuse(*this, key, words, describe_json(item) + " in it");
    integers.push_back(one.integer(key, least, most));
  }
  return integers;
}

int Config::integer(const std::string& key, int least, int most) const {
  return required(maybe_integer(key, least, most), *this, key, integer_words(least, most));
}

double Config::number(const std::string& key, double least, double most) const {
  return required(maybe_number(key, least, most), *this, key, number_words(least, most));
}

std::string Config::string(const std::string& key) const {
  return required(maybe_string(key), *this, key, "a string");
}

Config Config::object(const std::string& key) const {
  return required(maybe_object(key), *this, key, "an object");
}

std::vector<std::string> Config::strings(const std::string& key) const {
  return required(maybe_strings(key), *this, key, "an array of strings");
}

}  // namespace foresay
