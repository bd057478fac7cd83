#include "library/field_names.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace foresay {
namespace {

/// Options whose field has a name of its own; the others differ in their dashes only.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kOthers = {{
    {"min_tokens_to_keep", "min_keep"},
    {"repetition_context_size", "repetition_window"},
    {"presence_context_size", "presence_window"},
    {"frequency_context_size", "frequency_window"},
    {"bad_word", "bad_words"},
    {"sampler_order", "order"},
    {"logprobs", "top_logprobs"},
}};

}  // namespace

std::string with_field_name(std::string message) {
  if (!message.starts_with("--")) return message;
  const std::size_t end = std::min(message.find(':'), message.size());
  std::string name = message.substr(2, end - 2);
  std::ranges::replace(name, '-', '_');
  for (const auto& [option, field] : kOthers) {
    if (name == option) name = field;
  }
  return name + message.substr(end);
}

}  // namespace foresay
