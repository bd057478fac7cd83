#include "base/error.h"

#include <gtest/gtest.h>

namespace foresay {
namespace {

TEST(Error, EveryCodeHasItsExitStatus) {
  EXPECT_EQ(exit_code(ErrorCode::internal), 1);
  EXPECT_EQ(exit_code(ErrorCode::usage), 2);
  EXPECT_EQ(exit_code(ErrorCode::checkpoint), 3);
  EXPECT_EQ(exit_code(ErrorCode::unsupported), 4);
  EXPECT_EQ(exit_code(ErrorCode::mtp_required), 5);
  EXPECT_EQ(exit_code(ErrorCode::capacity), 6);
  EXPECT_EQ(exit_code(ErrorCode::check_failed), 7);
  EXPECT_EQ(exit_code(ErrorCode::cancelled), 130);
}

TEST(Error, FailFormatsTheMessageAndKeepsTheCode) {
  try {
    fail(ErrorCode::checkpoint, "[load] {}: expected {}, found {}", "a.weight", 3, 4);
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::checkpoint);
    EXPECT_STREQ(error.what(), "[load] a.weight: expected 3, found 4");
  }
}

}  // namespace
}  // namespace foresay
