#include "decode/prefill.h"

#include <algorithm>

#include "decode/verify.h"

namespace foresay {

void prefill(const Model& model, Drafter* drafter, Sequence& sequence, int chunk, const std::atomic<bool>* cancel) {
  if (drafter != nullptr && sequence.options.depth > 0) sequence.draft_state = drafter->begin();
  const int length = sequence.prompt_length, step = chunk > 0 ? chunk : length;
  for (int first = 0; first < length; first += step) {
    if (cancel != nullptr && *cancel) {
      sequence.finish = Finish::cancelled;
      return;
    }
    const int count = std::min(step, length - first);
    Pass pass;
    pass.tokens.assign(sequence.tokens.begin() + first, sequence.tokens.begin() + first + count);
    pass.slices = {{0, count, sequence.caches.get(), false}};
    if (first + count == length) pass.logit_rows = {count - 1};  // the last chunk draws the first token
    const Forward forward = model.forward(pass);
    sequence.stats.prompt_tokens += count;
    if (sequence.draft_state) drafter->observe(sequence, model.head_input(forward));
    if (!pass.logit_rows.empty()) {
      const auto verdict = decide(sequence, {}, model.ops().read(forward.logits));
      if (verdict) sequence.emit({&verdict->next, 1});
    }
  }
}

}  // namespace foresay
