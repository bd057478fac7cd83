// Options that cannot be honoured: refused by name, before a model is opened.
#include <cmath>
#include <limits>

#include "checkpoint/expect_error.h"
#include "foresay/foresay.h"

namespace foresay {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const std::string kBadUtf8 = "abc\xC3(";

using Change = void (*)(Request&);

TEST(ValidateRequest, EveryOptionIsRefusedByItsName) {
  const std::vector<std::pair<std::string, Change>> cases = {
      {"temperature: ", [](Request& r) { r.sampling.temperature = kNan; }},
      {"temperature: ", [](Request& r) { r.sampling.temperature = std::numeric_limits<double>::infinity(); }},
      {"temperature: ", [](Request& r) { r.sampling.temperature = -1; }},
      {"top_k: ", [](Request& r) { r.sampling.top_k = -1; }},
      {"top_p: ", [](Request& r) { r.sampling.top_p = kNan; }},
      {"top_p: ", [](Request& r) { r.sampling.top_p = 0; }},
      {"min_p: ", [](Request& r) { r.sampling.min_p = 1; }},
      {"min_p: ", [](Request& r) { r.sampling.min_p = kNan; }},
      {"depth: ", [](Request& r) { r.depth = -1; }},
      {"depth: ", [](Request& r) { r.depth = 9; }},
      {"max_tokens: ", [](Request& r) { r.max_tokens = 0; }},
      {"max_tokens: ", [](Request& r) { r.max_tokens = std::numeric_limits<int>::max(); }},
      {"min_tokens: ", [](Request& r) { r.min_tokens = 257; }},
      {"min_tokens: ", [](Request& r) { r.min_tokens = -1; }},
      {"top_logprobs: ", [](Request& r) { r.top_logprobs = -1; }},
      {"min_keep: ", [](Request& r) { r.sampling.min_keep = 0; }},
      {"xtc_probability: ", [](Request& r) { r.sampling.xtc_probability = kNan; }},
      {"xtc_threshold: ", [](Request& r) { r.sampling.xtc_threshold = kNan; }},
      {"repetition_penalty: ", [](Request& r) { r.sampling.repetition_penalty = kNan; }},
      {"presence_penalty: ", [](Request& r) { r.sampling.presence_penalty = kNan; }},
      {"frequency_penalty: ", [](Request& r) { r.sampling.frequency_penalty = 101; }},
      {"repetition_window: ", [](Request& r) { r.sampling.repetition_window = -1; }},
      {"logit_bias: ", [](Request& r) { r.sampling.logit_bias = {{1, std::nanf("")}}; }},
      {"bad_words: ", [](Request& r) { r.sampling.bad_words = {{}}; }},
      {"order: ", [](Request& r) { r.sampling.order.pop_back(); }},
      {"n: ", [](Request& r) { r.n = 0; }},
      {"n: ", [](Request& r) { r.n = 1025; }},
      {"stop: ", [](Request& r) { r.stop = {"ok", ""}; }},
      {"stop: ", [](Request& r) { r.stop = {kBadUtf8}; }},
      {"stop_ids: ", [](Request& r) { r.stop_ids = {-1}; }},
      {"prompt: ", [](Request& r) { r.prompt = kBadUtf8; }},
      {"prompt: ", [](Request& r) { r.prompt = ""; }},
      {"prompt: ", [](Request& r) { r.ids = {1}; }},
      {"prompt: ", [](Request& r) { r.messages = {{"user", "hi"}}; }},
      {"ids: ", [](Request& r) { r.prompt = "", r.ids = {1, -2}; }},
      {"messages: ", [](Request& r) { r.prompt = "", r.messages = {{"", "hi"}}; }},
      {"messages: ", [](Request& r) { r.prompt = "", r.messages = {{"user", kBadUtf8}}; }},
      {"template_variables: ", [](Request& r) { r.template_variables = "{}"; }},
      {"template_variables: ",
          [](Request& r) { r.prompt = "", r.messages = {{"user", "hi"}}, r.template_variables = "[1]"; }},
      {"template_variables: ",
          [](Request& r) { r.prompt = "", r.messages = {{"user", "hi"}}, r.template_variables = "{\"a\": "; }},
      {"template_variables: ",
          [](Request& r) {
            r.prompt = "", r.messages = {{"user", "hi"}};
            r.template_variables = "{\"a\": " + std::string(100, '[') + std::string(100, ']') + "}";
          }},
  };
  Request good;
  good.prompt = "hello";
  EXPECT_NO_THROW(validate(good));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    Request bad = good;
    cases[i].second(bad);
    expect_error(ErrorCode::usage, {cases[i].first + "expected", "found"}, [&] { validate(bad); });
    try {
      validate(bad);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find(cases[i].first), 0u) << error.what();
    }
  }
}

TEST(ValidateModelOptions, EveryOptionIsRefusedByItsNameBeforeTheFolderIsLookedAt) {
  const std::vector<std::pair<std::vector<std::string>, ModelOptions>> cases = {
      {{"mtp: ", "\"yes\""}, {.mtp = "yes"}},
      {{"mtp: ", "UTF-8"}, {.mtp = kBadUtf8}},
      {{"lane: ", "auto, cpu, mlx", "\"tpu\""}, {.lane = "tpu"}},
      {{"device: ", "\"npu\""}, {.device = "npu"}},
      {{"device gpu: ", "mlx"}, {.lane = "cpu", .device = "gpu"}},
      {{"threads: ", "mlx"}, {.lane = "mlx", .threads = 2}},
      {{"threads: ", "-1"}, {.threads = -1}},
      {{"threads: ", "1025"}, {.threads = 1025}},
      {{"prefill_chunk: ", "-1"}, {.prefill_chunk = -1}},
  };
  for (const auto& [parts, options] : cases) {
    expect_error(ErrorCode::usage, parts, [&] { (void)LanguageModel::load("/no/such/folder", options); });
  }
}

}  // namespace
}  // namespace foresay
