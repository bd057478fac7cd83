// cli/sampling_options.h: the options of every verb that samples, and what they ask of the decoder.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "decode/sequence.h"
#include "library/text_model.h"

namespace foresay::cli {

/// As the command line gives them; numbers are in place, texts wait for sampling_for().
struct SamplingArguments {
  SamplingOptions numbers;
  std::string accept, order;
  std::vector<std::string> logit_bias;  ///< ID=VALUE, or a JSON object
  std::vector<std::string> bad_words;
};

/// Declares --temperature, --top-k, ... under mlx-lm's names. Values out of range, and options that change nothing
/// without another one, are refused while the command line is read.
void add_sampling_options(CLI::App& app, SamplingArguments& arguments);

/// --max-tokens and --min-tokens.
void add_length_options(CLI::App& app, DecodeOptions& decode);

/// --depth, --draft-vocab.
void add_drafting_options(CLI::App& app, DecodeOptions& decode);

/// Refuses what the command line alone can tell; throws ErrorCode::usage naming the option. For before the load.
void check_sampling(const SamplingArguments& arguments, const DecodeOptions& lengths);

/// The whole request: texts as ids of this model. Throws ErrorCode::usage for an id outside the vocabulary,
/// ErrorCode::checkpoint where words need a tokenizer and there is none.
[[nodiscard]] SamplingOptions sampling_for(const SamplingArguments& arguments, const TextModel& model);

}  // namespace foresay::cli
