#include <algorithm>
#include <nlohmann/json.hpp>

#include "fuzz/input.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace foresay::fuzz {

void tokenizer(Bytes input) {
  static const Folder folder("tokenizer");
  folder.write("tokenizer.json", input);
  expect_read_or_error([&] {
    const Tokenizer tokenizer = Tokenizer::load(folder.path());
    for (const char* text : {"", "def main(argv):\n\treturn 0", "<|im_start|>user \xC3\xA9\xF0\x9F\x98\x80", "   "}) {
      for (const TokenId id : tokenizer.encode(text)) (void)tokenizer.token_bytes(id, true);
    }
    for (TokenId id = -1; id < std::min(tokenizer.size(), 300); ++id) (void)tokenizer.token_bytes(id, false);
    (void)tokenizer.token_bytes(tokenizer.size(), false);
    (void)tokenizer.id_of("<|im_end|>");
  });
}

void chat_template(Bytes input) {
  using Json = nlohmann::ordered_json;
  static const Json messages = Json::parse(R"([{"role": "system", "content": "Be brief."},
      {"role": "user", "content": [{"type": "text", "text": "Hi {{ x }}"}]},
      {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
      {"role": "tool", "content": "2"}, {"role": "user", "content": "ok"}])");
  static const Json arguments =
      Json::parse(R"({"add_generation_prompt": true, "tools": [{"type": "function", "function": {"name": "f"}}]})");
  expect_read_or_error([&] {
    const auto source = std::string(reinterpret_cast<const char*>(input.data()), input.size());
    const std::string text = ChatTemplate::parse(source, {{"bos_token", "<s>"}}).render(messages, arguments);
    if (!is_utf8(text)) broken("a prompt is UTF-8", text.c_str());
  });
}

}  // namespace foresay::fuzz
