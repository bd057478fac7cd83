// checkpoint/config.h: typed reading of a checkpoint's JSON files, with errors that name the file and the key.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace foresay {

/// One JSON object and where it came from ("config.json: text_config"). Copies are cheap enough: configs are small.
class Config {
 public:
  Config() = default;
  Config(nlohmann::json object, std::string where) : json_(std::move(object)), where_(std::move(where)) {}

  /// Parses a file that must hold a JSON object. Throws ErrorCode::checkpoint with file, line and column.
  [[nodiscard]] static Config read(const std::filesystem::path& path);

  [[nodiscard]] bool has(const std::string& key) const;  ///< present and not null
  [[nodiscard]] const nlohmann::json& json() const { return json_; }
  [[nodiscard]] const std::string& where() const { return where_; }

  // Required values: throw ErrorCode::checkpoint naming file, key, what was expected and what was found.
  [[nodiscard]] int integer(const std::string& key, int least, int most) const;
  [[nodiscard]] double number(const std::string& key, double least, double most) const;
  [[nodiscard]] std::string string(const std::string& key) const;
  [[nodiscard]] Config object(const std::string& key) const;
  [[nodiscard]] std::vector<std::string> strings(const std::string& key) const;

  // Optional values: empty when absent or null; a value of the wrong kind or out of range still throws.
  [[nodiscard]] std::optional<int> maybe_integer(const std::string& key, int least, int most) const;
  [[nodiscard]] std::optional<double> maybe_number(const std::string& key, double least, double most) const;
  [[nodiscard]] std::optional<bool> maybe_boolean(const std::string& key) const;
  [[nodiscard]] std::optional<std::string> maybe_string(const std::string& key) const;
  [[nodiscard]] std::optional<Config> maybe_object(const std::string& key) const;
  [[nodiscard]] std::optional<std::vector<std::string>> maybe_strings(const std::string& key) const;
  [[nodiscard]] std::optional<std::vector<int>> maybe_integers(const std::string& key, int least, int most) const;

 private:
  nlohmann::json json_ = nlohmann::json::object();
  std::string where_;
};

}  // namespace foresay
