#include "library/batch_state.h"

namespace foresay {

RequestBatch::RequestBatch(std::shared_ptr<Engine> engine) : state_(std::make_unique<BatchState>(std::move(engine))) {}

RequestBatch::~RequestBatch() = default;
RequestBatch::RequestBatch(RequestBatch&&) noexcept = default;
RequestBatch& RequestBatch::operator=(RequestBatch&&) noexcept = default;

int RequestBatch::add(const Request& request, OnPiece on_piece) {
  validate(request);
  const std::vector<TokenId> prompt = prompt_ids(state_->engine(), request);
  return state_->engine().thread().run([&] { return state_->add(request, prompt, on_piece); });
}

bool RequestBatch::step() {
  return state_->engine().thread().run([&] { return state_->step(); });
}

void RequestBatch::run() {
  while (step()) {
  }
}

bool RequestBatch::finished(int handle) const {
  return state_->engine().thread().run([&] { return state_->finished(handle); });
}

void RequestBatch::cancel(int handle) {
  state_->engine().thread().run([&] { state_->cancel(handle); });
}

Answer RequestBatch::take(int handle) {
  return state_->engine().thread().run([&] { return state_->take(handle); });
}

}  // namespace foresay
