#include "library/batch_state.h"

#include <ranges>

#include "base/error.h"
#include "library/field_names.h"

namespace foresay {

BatchState::~BatchState() {
  const auto drop = [this] {
    cancel_all();
    answers_.clear();
  };
  if (engine_->thread().is_current()) {  // a callback of another batch dropped this one
    drop();
  } else {
    engine_->thread().run(drop);
  }
}

int BatchState::add(const Request& request, const std::vector<TokenId>& prompt, const OnPiece& on_piece) {
  const TextModel& model = engine_->text();
  std::vector<std::unique_ptr<Sequence>> choices;  // all of them before one joins: a refused prompt leaves nothing
  naming_fields([&] {
    for (int choice = 0; choice < request.n; ++choice) {
      choices.push_back(std::make_unique<Sequence>(model.model(), prompt, decode_options(model, request, choice)));
    }
  });
  const int first = next_handle_;
  for (const auto& choice : choices) {
    answers_[next_handle_] = {std::make_unique<Answering>(model, *choice, request, next_handle_, on_piece)};
    ++next_handle_;
  }
  batch_.join(std::move(choices));  // one prompt, read once
  return first;
}

bool BatchState::step() {
  for (auto& [handle, entry] : answers_) {
    entry.answering->cancel_where_asked_to();
    settle(entry);
  }
  bool running = false;
  try {
    running = batch_.step();
  } catch (...) {
    cancel_all();  // whatever it was, caches may be half written: no answer can go on
    throw;
  }
  std::exception_ptr error;
  for (auto& [handle, entry] : answers_) {
    settle(entry);
    if (std::exception_ptr thrown = entry.answering->take_error(); thrown && !error) error = std::move(thrown);
  }
  if (error) std::rethrow_exception(error);
  return running;
}

void BatchState::cancel(int handle) {
  Entry& entry = at(handle);
  entry.answering->cancel();
  settle(entry);
}

Answer BatchState::take(int handle) {
  cancel(handle);
  const Entry entry = std::move(answers_.extract(handle).mapped());
  if (std::exception_ptr thrown = entry.answering->take_error()) std::rethrow_exception(std::move(thrown));
  return entry.answering->answer(engine_->mtp());
}

void BatchState::settle(Entry& entry) {
  if (entry.answering->running()) return;
  leave(entry);
  entry.answering->end();
}

void BatchState::leave(Entry& entry) {
  if (entry.ended) return;
  entry.ended = batch_.leave(entry.answering->sequence());
  entry.ended->caches.reset();  // the answer may wait for long
  entry.ended->draft_state.reset();
}

void BatchState::cancel_all() {
  // The last first: of answers to one prompt the first reads it, and hands what it has read to the next when it leaves.
  for (auto& [handle, entry] : answers_ | std::views::reverse) {
    entry.answering->cancel();
    leave(entry);
  }
}

BatchState::Entry& BatchState::at(int handle) {
  const auto found = answers_.find(handle);
  if (found == answers_.end()) {
    fail(ErrorCode::usage, "handle: expected one of an answer in this batch, found {}; answers leave it with take()",
        handle);
  }
  return found->second;
}

}  // namespace foresay
