#include "decode/batch.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "decode/prefill.h"
#include "decode/round.h"

namespace foresay {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Sequence& Batch::join(std::unique_ptr<Sequence> sequence) {
  Sequence& joined = *sequence;
  std::vector<std::unique_ptr<Sequence>> one;
  one.push_back(std::move(sequence));
  join(std::move(one));
  return joined;
}

void Batch::join(std::vector<std::unique_ptr<Sequence>> choices) {
  std::vector<Sequence*> group;
  for (const auto& sequence : choices) {
    if (sequence->tokens != choices.front()->tokens || sequence->caches->length() != 0) {
      fail(ErrorCode::internal, "[batch] expected sequences with one prompt that was not read yet");
    }
    const int deepest = drafter_ != nullptr ? drafter_->max_depth() : 0;
    sequence->stats.depth = std::min(sequence->options.depth, deepest);
    sequence->stats.drafted.resize(static_cast<std::size_t>(sequence->stats.depth));
    sequence->stats.accepted.resize(static_cast<std::size_t>(sequence->stats.depth));
    group.push_back(sequence.get());
  }
  if (group.empty()) return;
  for (auto& sequence : choices) sequences_.push_back(std::move(sequence));
  reading_.push_back(std::move(group));
}

std::unique_ptr<Sequence> Batch::leave(const Sequence& sequence) {
  const auto at = std::ranges::find(sequences_, &sequence, &std::unique_ptr<Sequence>::get);
  if (at == sequences_.end()) fail(ErrorCode::internal, "[batch] the sequence that leaves is not here");
  std::unique_ptr<Sequence> left = std::move(*at);
  sequences_.erase(at);
  stop_reading(*left);
  return left;
}

/// Whoever reads for others hands over what was read, and they go on there.
void Batch::stop_reading(Sequence& sequence) {
  for (auto group = reading_.begin(); group != reading_.end(); ++group) {
    const auto member = std::ranges::find(*group, &sequence);
    if (member == group->end()) continue;
    const bool was_reader = member == group->begin();
    group->erase(member);
    if (group->empty()) {
      reading_.erase(group);
    } else if (was_reader) {
      group->front()->fork_state(sequence, drafter_);
    }
    return;
  }
}

bool Batch::step() {
  for (const auto& sequence : sequences_) {
    if (sequence->finish != Finish::running) stop_reading(*sequence);
  }
  const bool reads = !reading_.empty();
  // Who reads now decodes from the next step on: a round must not wait for the prompt that was read beside it.
  run_round();
  if (reads) read_prompt();
  return std::ranges::any_of(sequences_, [](const auto& each) { return each->finish == Finish::running; });
}

bool Batch::is_reading(const Sequence* sequence) const {
  return std::ranges::any_of(
      reading_, [&](const auto& group) { return std::ranges::find(group, sequence) != group.end(); });
}

void Batch::read_prompt() {
  std::vector<Sequence*>& group = reading_.front();
  const auto start = std::chrono::steady_clock::now();
  const bool read = prefill_chunk(model_, drafter_, group, prefill_chunk_);
  for (Sequence* sequence : group) sequence->stats.prompt_seconds += seconds_since(start);
  if (read) reading_.erase(reading_.begin());
}

void Batch::run_round() {
  std::vector<Sequence*> running;
  for (const auto& sequence : sequences_) {
    if (sequence->finish == Finish::running && !is_reading(sequence.get())) running.push_back(sequence.get());
  }
  if (running.empty()) return;
  const auto start = std::chrono::steady_clock::now();
  round(model_, drafter_, running);
  for (Sequence* sequence : running) sequence->stats.decode_seconds += seconds_since(start);
}

}  // namespace foresay
