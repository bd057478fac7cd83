// cli/option_values.h: reading the values of options, with messages that say what was expected and what was found.
#pragma once

#include <CLI/App.hpp>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "foresay/token.h"

namespace foresay::cli {

/// Checks for CLI11; where one fails it says what was expected. Whole numbers are read in base 10 only.
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> values);
[[nodiscard]] CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);
/// `range` says which numbers `fits` takes: ">= 0". NaN and infinities are refused before it is asked.
[[nodiscard]] CLI::Validator number(std::string range, bool (*fits)(double));
[[nodiscard]] CLI::Validator not_empty();

[[nodiscard]] std::optional<double> parse_double(std::string_view text);

/// The whole text as a finite number in base 10, else nothing. Of integers and double.
template <std::integral Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  Number value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}
template <std::same_as<double> Number>
[[nodiscard]] std::optional<double> parse_number(std::string_view text) {
  return parse_double(text);
}

/// "expected ..., found "..."", a long value shortened.
[[nodiscard]] std::string mismatch(std::string_view expected, std::string_view found);

/// "1,2,3" or "1 2 3" -> ids. Throws ErrorCode::usage naming the option and the piece that is no id.
[[nodiscard]] std::vector<TokenId> parse_ids(std::string_view option, std::string_view text);

/// The value of an option, with "-" standing for all of stdin. Throws ErrorCode::usage when stdin cannot be read,
/// ErrorCode::cancelled after Ctrl-C.
[[nodiscard]] std::string value_or_stdin(std::string_view option, const std::string& value);

/// Throws ErrorCode::usage naming the option and the first bad byte when `text` is not UTF-8.
void expect_utf8(std::string_view option, std::string_view text);

}  // namespace foresay::cli
