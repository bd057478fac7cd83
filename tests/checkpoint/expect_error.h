// checkpoint/expect_error.h: checks on the errors that a bad file gives.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace foresay {

/// Runs `action`, which must throw Error of this kind with every one of `parts` in its message.
template <typename Action>
void expect_error(ErrorCode code, const std::vector<std::string>& parts, Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const auto& part : parts) EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    return;
  }
  ADD_FAILURE() << "no error; expected one about " << (parts.empty() ? "anything" : parts.front());
}

}  // namespace foresay
