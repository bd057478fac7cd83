#include "cli/option_values.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "cli/interrupt.h"
#include "text/detokenizer.h"

namespace foresay::cli {
namespace {

constexpr std::size_t kLongestQuote = 40;  // of a value in a message

}  // namespace

std::optional<double> parse_double(std::string_view text) {
  // strtod, since not every C++ library reads doubles with from_chars; what it takes beyond a plain number is refused.
  if (text.empty() || text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return std::nullopt;
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(copy.c_str(), &end);
  if (text.front() == '+' || end != copy.c_str() + copy.size() || errno != 0) return std::nullopt;
  return value;
}

std::string mismatch(std::string_view expected, std::string_view found) {
  if (found.size() <= kLongestQuote) return fmt::format("expected {}, found \"{}\"", expected, found);
  std::size_t end = kLongestQuote;
  while (end > 0 && (static_cast<unsigned char>(found[end]) & 0xC0) == 0x80) --end;  // not within a character
  return fmt::format("expected {}, found \"{}\"...", expected, found.substr(0, end));
}

CLI::Validator one_of(std::vector<std::string> values) {
  const std::string names = fmt::format("{}", fmt::join(values, "|"));
  return CLI::Validator(
      [values](std::string& found) {
        const bool known = std::find(values.begin(), values.end(), found) != values.end();
        return known ? std::string() : mismatch(fmt::format("one of {}", fmt::join(values, ", ")), found);
      },
      names);
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return CLI::Validator(
      [least, most](std::string& found) {
        const auto value = parse_number<std::uint64_t>(found);
        if (!value || *value < least || *value > most) {
          return mismatch(fmt::format("a whole number from {} to {}", least, most), found);
        }
        found = std::to_string(*value);  // CLI11 would read a leading 0 as base 8
        return std::string();
      },
      "");
}

CLI::Validator number(std::string range, bool (*fits)(double)) {
  return CLI::Validator(
      [range = std::move(range), fits](std::string& found) {
        const auto value = parse_number<double>(found);
        return value && fits(*value) ? std::string()
                                     : mismatch("a finite number" + (range.empty() ? range : " " + range), found);
      },
      "");
}

CLI::Validator not_empty() {
  return CLI::Validator(
      [](std::string& found) { return found.empty() ? std::string("expected a value, found nothing") : std::string(); },
      "");
}

std::vector<TokenId> parse_ids(std::string_view option, std::string_view text) {
  std::vector<TokenId> ids;
  constexpr std::string_view kSeparators = ", \t\r\n";
  for (std::size_t at = text.find_first_not_of(kSeparators); at != std::string_view::npos;
      at = text.find_first_not_of(kSeparators, at)) {
    const std::size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    const std::string_view piece = text.substr(at, end - at);
    const auto id = parse_number<TokenId>(piece);
    if (!id || *id < 0) fail(ErrorCode::usage, "{}: {}", option, mismatch("token ids such as 1,2,3", piece));
    ids.push_back(*id);
    at = end;
  }
  if (ids.empty()) fail(ErrorCode::usage, "{}: expected token ids such as 1,2,3, found none", option);
  return ids;
}

std::string value_or_stdin(std::string_view option, const std::string& value) {
  if (value != "-") return value;
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count == 0) return text;
    if (interrupted()) fail(ErrorCode::cancelled, "interrupted while reading stdin");
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      fail(ErrorCode::usage, "{} -: cannot read stdin: {}", option,
          errno == EBADF ? "it is closed" : std::strerror(errno));
    }
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

void expect_utf8(std::string_view option, std::string_view text) {
  const std::size_t valid = valid_utf8_prefix(text);
  if (valid == text.size()) return;
  fail(ErrorCode::usage, "{}: expected UTF-8 text, found byte 0x{:02x} at offset {}", option,
      static_cast<unsigned char>(text[valid]), valid);
}

}  // namespace foresay::cli
