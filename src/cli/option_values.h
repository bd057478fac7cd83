// cli/option_values.h: reading the values of options, with messages that say what was expected and what was found.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foresay/token.h"

namespace foresay::cli {

/// Checks for CLI11; where one fails it says what was expected. Whole numbers are read in base 10 only.
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> values);
[[nodiscard]] CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);
[[nodiscard]] CLI::Validator any_number();
[[nodiscard]] CLI::Validator at_least_zero();
[[nodiscard]] CLI::Validator not_empty();

/// "1,2,3" or "1 2 3" -> ids. Throws ErrorCode::usage naming the option and the piece that is no id.
[[nodiscard]] std::vector<TokenId> parse_ids(std::string_view option, std::string_view text);

/// The value of an option, with "-" standing for all of stdin. Throws ErrorCode::usage when stdin cannot be read,
/// ErrorCode::cancelled after Ctrl-C.
[[nodiscard]] std::string value_or_stdin(std::string_view option, const std::string& value);

/// Throws ErrorCode::usage naming the option and the first bad byte when `text` is not UTF-8.
void expect_utf8(std::string_view option, std::string_view text);

}  // namespace foresay::cli
