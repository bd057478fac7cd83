// library/library_model.h: the bundled checkpoint through the public interface, and requests to it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "foresay/foresay.h"

namespace foresay {

inline const std::string kBundledFolder = FORESAY_MODELS "/tiny-qwen3_5";

/// Loaded once: it may be used from any thread.
inline const LanguageModel& bundled() {
  static const LanguageModel model = LanguageModel::load(kBundledFolder, {.threads = 2});
  return model;
}

inline Request ask(const std::string& prompt, int max_tokens = 24) {
  return {.prompt = prompt, .max_tokens = max_tokens, .ignore_eos = true};
}

inline void expect_same(const Answer& found, const Answer& expected) {
  EXPECT_EQ(found.ids, expected.ids);
  EXPECT_EQ(found.text, expected.text);
  EXPECT_EQ(found.finish, expected.finish);
  EXPECT_EQ(found.prompt_ids, expected.prompt_ids);
}

}  // namespace foresay
