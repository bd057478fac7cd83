// cli/verify_prompts.h: what `verify` decodes: texts of its own, or those of a file.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "decode/lossless/lossless.h"
#include "library/text_model.h"

namespace foresay::cli {

using VerifyPrompt = std::variant<std::string, std::vector<TokenId>>;  ///< text, or ids as they are

/// A text file with a prompt per line (blank lines are skipped), or a JSON list whose items are strings,
/// {"prompt": "text"} or {"ids": [1, 2]}. Throws ErrorCode::usage naming the file and the line or item.
[[nodiscard]] std::vector<VerifyPrompt> read_verify_prompts(const std::string& file);

/// Texts of different kinds where the model has a tokenizer, else ids from all over its vocabulary.
[[nodiscard]] std::vector<VerifyPrompt> built_in_prompts(const TextModel& model);

/// The first `most` prompts as ids, named by their number.
[[nodiscard]] std::vector<LosslessPrompt> encode_prompts(
    const std::vector<VerifyPrompt>& prompts, const TextModel& model, std::size_t most);

}  // namespace foresay::cli
