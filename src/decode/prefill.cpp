#include "decode/prefill.h"

#include <algorithm>

#include "decode/verify.h"

namespace foresay {
namespace {

bool drafts(const Sequence* sequence) {
  return sequence->options.depth > 0;
}

}  // namespace

bool prefill_chunk(const Model& model, Drafter* drafter, std::span<Sequence* const> sequences, int chunk) {
  Sequence& reader = *sequences.front();
  const int first = reader.caches->length(), left = reader.prompt_length - first;
  const int count = chunk > 0 ? std::min(chunk, left) : left;
  if (first == 0 && drafter != nullptr && std::ranges::any_of(sequences, drafts)) reader.draft_state = drafter->begin();

  Pass pass;
  pass.tokens.assign(reader.tokens.begin() + first, reader.tokens.begin() + first + count);
  pass.slices = {{0, count, reader.caches.get(), false}};
  if (count == left) pass.logit_rows = {count - 1};  // the last chunk draws the first token
  const Forward forward = model.forward(pass);
  if (reader.draft_state) drafter->observe(reader, model.head_input(forward));
  for (Sequence* sequence : sequences) sequence->stats.prompt_tokens += count;
  if (count < left) return false;

  for (Sequence* sequence : sequences.subspan(1)) sequence->fork_state(reader, drafter);
  if (!drafts(&reader)) reader.draft_state.reset();
  const std::span<const float> logits = model.ops().read(forward.logits);
  for (Sequence* sequence : sequences) {
    const auto verdict = decide(*sequence, {}, logits);
    if (verdict) sequence->emit({&verdict->next, 1}, logits);
  }
  return true;
}

void prefill(const Model& model, Drafter* drafter, Sequence& sequence, int chunk, const std::atomic<bool>* cancel) {
  Sequence* const one[] = {&sequence};
  bool read = false;
  while (!read) {
    if (cancel != nullptr && *cancel) {
      sequence.finish = Finish::cancelled;
      return;
    }
    read = prefill_chunk(model, drafter, one, chunk);
  }
}

}  // namespace foresay
