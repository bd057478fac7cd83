#include "cli/verify_prompts.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/noise.h"
#include "cli/option_values.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::json;

VerifyPrompt text_prompt(std::string text, const std::string& where) {
  if (text.empty()) fail(ErrorCode::usage, "--prompts: {}: expected text, found nothing", where);
  expect_utf8("--prompts: " + where, text);
  return text;
}

VerifyPrompt ids_prompt(const Json& list, const std::string& where) {
  std::vector<TokenId> ids;
  bool good = list.is_array() && !list.empty();
  for (std::size_t i = 0; good && i < list.size(); ++i) {
    good = list[i].is_number_integer() && list[i] >= 0 && list[i] <= std::numeric_limits<TokenId>::max();
    if (good) ids.push_back(list[i].get<TokenId>());
  }
  if (!good)
    fail(ErrorCode::usage, "--prompts: {}: expected \"ids\" to be a list of token ids, found other things", where);
  return ids;
}

std::vector<VerifyPrompt> parse_list(const std::string& file, const std::string& content) {
  const Json list = Json::parse(content, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) {
    fail(ErrorCode::usage,
        "--prompts: {}: expected a JSON list because it begins with [, found something that does not parse as one; for "
        "a prompt that begins with [ put it into a list",
        file);
  }
  std::vector<VerifyPrompt> prompts;
  for (const Json& item : list) {
    const std::string where = fmt::format("{}, item {}", file, prompts.size());
    const bool object = item.is_object() && item.size() == 1;
    if (item.is_string()) {
      prompts.push_back(text_prompt(item.get<std::string>(), where));
    } else if (object && item.contains("prompt") && item["prompt"].is_string()) {
      prompts.push_back(text_prompt(item["prompt"].get<std::string>(), where));
    } else if (object && item.contains("ids")) {
      prompts.push_back(ids_prompt(item["ids"], where));
    } else {
      fail(ErrorCode::usage, R"(--prompts: {}: expected "text", {{"prompt": "text"}} or {{"ids": [1, 2]}}, found {})",
          where, item.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 60));
    }
  }
  return prompts;
}

std::vector<VerifyPrompt> parse_lines(const std::string& file, const std::string& content) {
  std::vector<VerifyPrompt> prompts;
  std::size_t number = 0;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t end = std::min(content.find('\n', at), content.size());
    std::string line = content.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    at = end + 1;
    ++number;
    if (!line.empty()) prompts.push_back(text_prompt(std::move(line), fmt::format("{}, line {}", file, number)));
  }
  return prompts;
}

}  // namespace

std::vector<VerifyPrompt> read_verify_prompts(const std::string& file) {
  const auto unreadable = [&](const std::string& why) {
    fail(ErrorCode::usage, "--prompts: cannot read {}: {}", file, why);
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) unreadable("it is a folder");
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in.is_open()) unreadable(std::strerror(errno));
  const std::string content{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  auto prompts =
      first != std::string::npos && content[first] == '[' ? parse_list(file, content) : parse_lines(file, content);
  if (prompts.empty()) fail(ErrorCode::usage, "--prompts: {}: expected a prompt, found none", file);
  return prompts;
}

std::vector<VerifyPrompt> built_in_prompts(const TextModel& model) {
  if (!model.has_tokenizer()) {
    std::vector<VerifyPrompt> prompts;
    const KeyedNoise noise(1);
    for (const std::uint32_t length : {9u, 70u, 1u, 33u}) {  // caches have pages of 64 positions
      std::vector<TokenId> ids;
      for (std::uint32_t i = 0; i < length; ++i) {
        ids.push_back(
            static_cast<TokenId>(noise.uniform(i, Purpose::draw, static_cast<TokenId>(length)) * model.vocab_limit()));
      }
      prompts.emplace_back(ids);
    }
    return prompts;
  }
  return {
      "def read_config(path):\n    \"\"\"Read a configuration file.\"\"\"\n    with open(path) as",
      "The old lighthouse stood at the end of the pier, and every evening",
      "Shopping list:\n- 2 apples\n- 12 eggs\n- 1.5 kg flour\n-",
      "Q: What is the capital of France?\nA: Paris.\nQ: What is 17 + 25?\nA:",
      // Repetition, which heads are good at, until it breaks; longer than a page of the caches.
      "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, "
      "one, two, three, four, five, six, seven, eight, nine, ten,",
      "\xE4\xBD\xA0\xE5\xA5\xBD\xEF\xBC\x8C"
      "\xE4\xB8\x96\xE7\x95\x8C\xEF\xBC\x81 caf\xC3\xA9 na\xC3\xAFve \xF0\x9F\x98\x80 <b>&amp;</b> \\frac{1}{2}",
  };
}

std::vector<LosslessPrompt> encode_prompts(
    const std::vector<VerifyPrompt>& prompts, const TextModel& model, std::size_t most) {
  std::vector<LosslessPrompt> encoded;
  for (std::size_t i = 0; i < std::min(prompts.size(), most); ++i) {
    const auto* const text = std::get_if<std::string>(&prompts[i]);
    encoded.push_back({std::to_string(i), text != nullptr ? model.tokenizer().encode(*text) : std::get<1>(prompts[i])});
  }
  return encoded;
}

}  // namespace foresay::cli
