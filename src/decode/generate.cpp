#include "decode/generate.h"

#include "base/error.h"
#include "decode/batch.h"

namespace foresay {

Generation generate(const Model& model, Drafter* drafter, const GenerateRequest& request) {
  std::function<bool(int, TokenId)> on_token;
  if (request.on_token) on_token = [&](int /*choice*/, TokenId id) { return request.on_token(id); };
  return std::move(generate_choices(model, drafter, request, 1, on_token).front());
}

std::vector<Generation> generate_choices(const Model& model, Drafter* drafter, const GenerateRequest& request, int n,
    const std::function<bool(int choice, TokenId)>& on_token) {
  if (n < 1) fail(ErrorCode::usage, "--choices: expected 1 or more, found {}", n);
  std::vector<std::unique_ptr<Sequence>> choices;
  std::vector<Sequence*> sequences;
  for (int c = 0; c < n; ++c) {
    DecodeOptions options = request.options;
    options.sampling.choice += static_cast<std::uint32_t>(c);
    choices.push_back(std::make_unique<Sequence>(model, request.prompt, std::move(options)));
    if (on_token) choices.back()->on_token = [&on_token, c](TokenId id) { return on_token(c, id); };
    sequences.push_back(choices.back().get());
  }
  Batch batch(model, drafter, request.prefill_chunk);
  batch.join(std::move(choices));
  bool running = true;
  while (running) {
    if (request.cancel != nullptr && *request.cancel) {
      for (Sequence* sequence : sequences) {
        if (sequence->finish == Finish::running) sequence->finish = Finish::cancelled;
      }
      break;
    }
    running = batch.step();
  }
  std::vector<Generation> generations;
  for (Sequence* sequence : sequences) {
    generations.push_back({{sequence->tokens.begin() + sequence->prompt_length, sequence->tokens.end()},
        std::move(sequence->log_probabilities), sequence->finish, std::move(sequence->problem), sequence->seed,
        std::move(sequence->stats)});
  }
  return generations;
}

}  // namespace foresay
