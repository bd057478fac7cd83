// library/batch_state.h: what a RequestBatch holds.
#pragma once

#include <map>
#include <memory>

#include "decode/batch.h"
#include "library/answering.h"

namespace foresay {

/// Constructor, destructor and engine() for any thread; the rest for the engine's.
class BatchState {
 public:
  explicit BatchState(std::shared_ptr<Engine> engine)
      : engine_(std::move(engine)),
        batch_(engine_->text().model(), engine_->text().drafter(), engine_->prefill_chunk()) {}
  ~BatchState();
  BatchState(const BatchState&) = delete;
  BatchState& operator=(const BatchState&) = delete;

  [[nodiscard]] Engine& engine() const { return *engine_; }

  [[nodiscard]] int add(const Request& request, const std::vector<TokenId>& prompt, const OnPiece& on_piece);
  bool step();
  [[nodiscard]] bool finished(int handle) { return !at(handle).answering->running(); }
  void cancel(int handle);
  [[nodiscard]] Answer take(int handle);

 private:
  /// An answer, and its sequence once that has ended and left the batch.
  struct Entry {
    std::unique_ptr<Answering> answering;
    std::unique_ptr<Sequence> ended = {};
  };

  /// What to do with an answer that may have ended.
  void settle(Entry& entry);
  /// Out of the batch, which would go on reading the prompt of a cancelled one.
  void leave(Entry& entry);
  void cancel_all();  ///< callbacks are not called any more
  [[nodiscard]] Entry& at(int handle);

  std::shared_ptr<Engine> engine_;
  Batch batch_;
  std::map<int, Entry> answers_;  ///< by handle
  int next_handle_ = 0;
};

}  // namespace foresay
