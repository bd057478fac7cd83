// library/field_names.h: options by the names that a request has for them.
#pragma once

#include <string>

#include "base/error.h"

namespace foresay {

/// Decoding names options in its messages as the program does, "--top-p: expected ..."; this is "top_p: expected ...".
[[nodiscard]] std::string with_field_name(std::string message);

/// Does `work`; the errors it throws name fields.
template <typename Work>
auto naming_fields(Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw Error(error.code(), with_field_name(error.what()));
  }
}

}  // namespace foresay
