// model/cache_checks.h: what tests of caches compare and feed.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.h"

namespace foresay {

inline std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

/// Tokens first, first + 1, ...: the text that counts. Above kWrong lie drafts that do not.
inline constexpr int kWrong = 1'000'000;
inline std::vector<int> text(int first, int count) {
  std::vector<int> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(first + i);
  return tokens;
}

inline void expect_internal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::internal) << error.what();
    return;
  }
  ADD_FAILURE() << "no error";
}

}  // namespace foresay
