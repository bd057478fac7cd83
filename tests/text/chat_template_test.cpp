#include "text/chat_template.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text_golden.h"

namespace foresay {
namespace {

using Json = nlohmann::ordered_json;

const Json kHello = Json::parse(R"([{"role": "user", "content": "Hello"}])");

template <typename Action>
Error error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::internal, "nothing was thrown"};
}

/// What `source` makes of a short conversation.
std::string render(const std::string& source, const Json& args = Json::object()) {
  return ChatTemplate::parse(source).render(kHello, args);
}

TEST(ChatTemplate, RendersAsTheReferenceDoes) {
  const auto golden = text_golden("chat.json");
  const Json special_tokens = {{"eos_token", "<|im_end|>"}, {"pad_token", "<|endoftext|>"}};
  int n_compared = 0;
  for (const auto& [name, results] : golden["results"].items()) {
    const auto chat_template = name.empty() ? ChatTemplate::load(tiny_model())
                                            : ChatTemplate::parse(golden["templates"][name], special_tokens);
    ASSERT_EQ(results.size(), golden["conversations"].size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto& conversation = golden["conversations"][i];
      const auto action = [&] { return chat_template.render(conversation["messages"], conversation["args"]); };
      if (results[i].contains("error")) {
        EXPECT_EQ(error_of([&] { (void)action(); }).code(), ErrorCode::usage) << name << " " << i;
      } else {
        EXPECT_EQ(action(), results[i]["text"].get<std::string>()) << "template '" << name << "', conversation " << i;
      }
      ++n_compared;
    }
  }
  EXPECT_EQ(n_compared, 70);
}

TEST(ChatTemplate, TheTemplatesOwnExceptionIsAUsageErrorWithItsMessage) {
  const auto tiny = ChatTemplate::load(tiny_model());
  const auto late_system = Json::parse(R"([{"role": "user", "content": "a"}, {"role": "system", "content": "b"}])");
  const auto error = error_of([&] { (void)tiny.render(late_system, Json::object()); });
  EXPECT_EQ(error.code(), ErrorCode::usage);
  EXPECT_STREQ(error.what(), "the system message must come first");

  const auto inside =
      error_of([] { (void)render("{% macro m() %}{{ raise_exception('in a ' ~ 'macro') }}{% endmacro %}{{ m() }}"); });
  EXPECT_EQ(inside.code(), ErrorCode::usage);
  EXPECT_STREQ(inside.what(), "in a macro");
}

TEST(ChatTemplate, OtherFailuresOfATemplateAreUsageErrorsWithTheLine) {
  const auto error = error_of([] { (void)render("a\n{{ messages[0].nothing.more }}"); });
  EXPECT_EQ(error.code(), ErrorCode::usage);
  EXPECT_NE(std::string(error.what()).find("line 2"), std::string::npos) << error.what();
}

TEST(ChatTemplate, ATemplateThatDoesNotParseIsACheckpointError) {
  for (const std::string source : {"{% if %}", "{{ a", "{% for m in messages %}", "{% nonsense %}", "\xFF"}) {
    EXPECT_EQ(error_of([&] { (void)ChatTemplate::parse(source); }).code(), ErrorCode::checkpoint) << source;
  }
}

TEST(ChatTemplate, ListsHaveNumberedAttributes) {
  EXPECT_EQ(render("{{ messages.0.role }} {{ m.0.role }}", {{"m", Json::parse(R"([{"role": "tool"}])")}}), "user tool");
}

TEST(ChatTemplate, AKeyNamedLikeAMethodDoesNotHideTheMethod) {
  const Json args = {{"d", Json::parse(R"({"items": 1, "keys": 2, "get": 3})")}};
  EXPECT_EQ(
      render("{% for k, v in d.items() %}{{ k }}{{ v }}{% endfor %} {{ d.get('keys') }}", args), "items1keys2get3 2");
}

TEST(ChatTemplate, NumbersPrintAsInPython) {
  const Json args = Json::parse(R"({"x": [1.0, 1e16, 1e-5, 0.1, -0.0, 18446744073709551615, 123456789012345680]})");
  EXPECT_EQ(
      render("{{ x | tojson }}", args), "[1.0, 1e+16, 1e-05, 0.1, -0.0, 18446744073709551615, 123456789012345680]");
  EXPECT_EQ(render("{{ x[1] }}", args), "1e+16");
}

TEST(ChatTemplate, TheYearIsThisCentury) {
  const auto year = render("{{ strftime_now('%Y') }}");
  ASSERT_EQ(year.size(), 4u);
  EXPECT_EQ(year.substr(0, 2), "20");
}

TEST(ChatTemplate, GenerationTagsRenderTheirBody) {
  EXPECT_EQ(render("a {%- generation -%} {{ messages[0].content }} {%- endgeneration %}\n{# {% generation %} #}b"),
      "aHellob");
}

TEST(ChatTemplate, MessagesThatAreNotObjectsOrNotUtf8AreRefused) {
  const auto chat_template = ChatTemplate::parse("{{ messages[0].content }}");
  for (const auto& messages :
      {Json("text"), Json::array({1}), Json::object(), Json::array({{{"content", "\xC3\x28"}}})}) {
    EXPECT_EQ(error_of([&] { (void)chat_template.render(messages, Json::object()); }).code(), ErrorCode::usage);
  }
}

TEST(ChatTemplate, NestingTooDeepIsAnErrorNotACrash) {
  Json deep = 1;
  for (int i = 0; i < 2000; ++i) deep = Json::array({std::move(deep)});
  EXPECT_EQ(error_of([&] { (void)render("{{ x | tojson }}", {{"x", deep}}); }).code(), ErrorCode::usage);
}

TEST(ChatTemplate, LoadPrefersTheFileAndTakesTheDefaultOfAList) {
  const ScratchFolder folder("template");
  EXPECT_EQ(error_of([&] { (void)ChatTemplate::load(folder.path()); }).code(), ErrorCode::checkpoint);

  folder.write("tokenizer_config.json",
      R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "unk_token": null,
          "chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "{{ bos_token ~ eos_token }}d{{ unk_token is defined }}"}]})");
  EXPECT_EQ(ChatTemplate::load(folder.path()).render(kHello, Json::object()), "<s></s>dFalse");

  folder.write("chat_template.jinja", "file {{ eos_token }}\n");
  EXPECT_EQ(ChatTemplate::load(folder.path()).render(kHello, Json::object()), "file </s>");

  folder.write("tokenizer_config.json", "{");
  EXPECT_EQ(error_of([&] { (void)ChatTemplate::load(folder.path()); }).code(), ErrorCode::checkpoint);
}

}  // namespace
}  // namespace foresay
