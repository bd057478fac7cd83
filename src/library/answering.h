// library/answering.h: one answer in the making: a sequence, the text it gives, and where it ends.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decode/sequence.h"
#include "foresay/foresay.h"
#include "library/engine.h"
#include "text/text_stream.h"

namespace foresay {

/// The prompt's ids. Any thread. Throws ErrorCode::checkpoint where the checkpoint lacks the tokenizer or template that
/// the request needs, and as the template does.
[[nodiscard]] std::vector<TokenId> prompt_ids(const Engine& engine, const Request& request);

/// How a valid request's answer number `choice` is decoded.
[[nodiscard]] DecodeOptions decode_options(const TextModel& model, const Request& request, int choice);

/// Listens to a sequence, which it does not own. Engine thread only.
class Answering {
 public:
  /// `sequence` calls back into this: neither may move while it runs.
  Answering(const TextModel& model, Sequence& sequence, const Request& request, int handle, OnPiece on_piece);
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

  [[nodiscard]] const Sequence& sequence() const { return sequence_; }
  [[nodiscard]] bool running() const { return sequence_.finish == Finish::running; }

  void cancel();                 ///< ends the sequence if it runs
  void cancel_where_asked_to();  ///< the same when Request::cancel is set

  /// Once the sequence has ended: gives out what was held back. May be called again.
  void end();

  /// What a callback threw, once.
  [[nodiscard]] std::exception_ptr take_error() { return std::exchange(error_, nullptr); }

  /// The answer. Throws for logits that are not finite, the target's or the head's, as RequestBatch::take() says.
  [[nodiscard]] Answer answer(MtpMode mode);

 private:
  bool on_token(TokenId id);
  /// Passes a piece on; true when the answer ends behind it.
  bool give(const std::string& text, std::optional<TokenId> id);

  const TextModel& model_;
  Sequence& sequence_;
  int handle_;
  OnPiece on_piece_;
  const std::atomic<bool>* cancel_;
  std::optional<TextStream> stream_;  ///< empty without a tokenizer
  std::string text_;
  std::exception_ptr error_;
  bool ended_ = false;
};

}  // namespace foresay
