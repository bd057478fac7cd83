// What can be refused of options and requests before a model is opened.
#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "base/error.h"
#include "foresay/foresay.h"
#include "library/field_names.h"
#include "library/request_json.h"
#include "text/detokenizer.h"

namespace foresay {
namespace {

void check_one_of(std::string_view option, std::string_view found, std::initializer_list<std::string_view> values) {
  if (std::ranges::find(values, found) != values.end()) return;
  const bool text = valid_utf8_prefix(found) == found.size();
  fail(ErrorCode::usage, "{}: expected one of {}, found {}", option, fmt::join(values, ", "),
      text ? fmt::format("\"{:.40}\"", found) : "bytes that are not UTF-8");
}

void check_range(std::string_view option, long value, long least, long most) {
  if (value < least || value > most) {
    fail(ErrorCode::usage, "{}: expected a whole number from {} to {}, found {}", option, least, most, value);
  }
}

void check_utf8(std::string_view option, std::string_view text) {
  const std::size_t valid = valid_utf8_prefix(text);
  if (valid == text.size()) return;
  fail(ErrorCode::usage, "{}: expected UTF-8 text, found byte 0x{:02x} at offset {}", option,
      static_cast<unsigned char>(text[valid]), valid);
}

void check_ids(std::string_view option, const std::vector<TokenId>& ids) {
  for (const TokenId id : ids) {
    if (id < 0) fail(ErrorCode::usage, "{}: expected token ids >= 0, found {}", option, id);
  }
}

void check_prompt(const Request& request) {
  std::string given;
  int count = 0;
  const auto note = [&](bool is_given, std::string_view name) {
    if (!is_given) return;
    given += fmt::format("{}{}", count > 0 ? " and " : "", name);
    ++count;
  };
  note(!request.prompt.empty(), "prompt");
  note(!request.messages.empty(), "messages");
  note(!request.ids.empty(), "ids");
  if (count != 1) {
    fail(ErrorCode::usage, "prompt: expected exactly one of prompt, messages and ids, and not empty; found {}",
        count == 0 ? "none" : given);
  }
  check_utf8("prompt", request.prompt);
  check_ids("ids", request.ids);
  for (const Message& message : request.messages) {
    if (message.role.empty()) fail(ErrorCode::usage, "messages: expected a role in each, found an empty one");
    check_utf8("messages", message.role);
    check_utf8("messages", message.content);
  }
  if (!request.template_variables.empty() && request.messages.empty()) {
    fail(ErrorCode::usage, "template_variables: expected messages beside it, found {}", given);
  }
  check_utf8("template_variables", request.template_variables);
  (void)json_object("template_variables", request.template_variables);
}

}  // namespace

void validate(const ModelOptions& options) {
  check_one_of("mtp", options.mtp, {"on", "auto", "off", "required"});
  check_one_of("lane", options.lane, {"auto", "cpu", "mlx"});
  check_one_of("device", options.device, {"auto", "cpu", "gpu"});
  check_range("threads", options.threads, 0, 1024);
  check_range("prefill_chunk", options.prefill_chunk, 0, 1 << 20);
}

void validate(const Request& request) {
  check_prompt(request);
  naming_fields([&] { validate(request.sampling); });
  check_range("depth", request.depth, 0, 8);
  check_range("draft_vocabulary", request.draft_vocabulary, -1, 1 << 30);
  check_range("max_tokens", request.max_tokens, 1, 1 << 30);
  check_range("min_tokens", request.min_tokens, 0, request.max_tokens);
  if (request.top_logprobs) check_range("top_logprobs", *request.top_logprobs, 0, 1 << 20);
  check_range("n", request.n, 1, 1024);
  for (const std::string& stop : request.stop) {
    if (stop.empty()) fail(ErrorCode::usage, "stop: expected text, found an empty string");
    check_utf8("stop", stop);
  }
  check_ids("stop_ids", request.stop_ids);
}

}  // namespace foresay
