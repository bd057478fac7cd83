#include "library/answering.h"

#include "base/error.h"
#include "library/head_outcome.h"
#include "library/request_json.h"

namespace foresay {
namespace {

FinishReason reason_of(Finish finish) {
  switch (finish) {
    case Finish::running:
      return FinishReason::running;
    case Finish::stop:
      return FinishReason::stop;
    case Finish::length:
      return FinishReason::length;
    case Finish::cancelled:
      return FinishReason::cancelled;
    case Finish::error:
      break;  // is thrown, never returned
  }
  fail(ErrorCode::internal, "[generate] a failed sequence has no finish reason");
}

}  // namespace

std::vector<TokenId> prompt_ids(const Engine& engine, const Request& request) {
  if (!request.stop.empty()) (void)engine.tokenizer();  // stop texts need one
  if (!request.ids.empty()) return request.ids;
  if (request.messages.empty()) return engine.tokenizer().encode(request.prompt);
  const std::string text =
      engine.chat_prompt(json_of(request.messages), json_object("template_variables", request.template_variables));
  return engine.tokenizer().encode(text);
}

DecodeOptions decode_options(const TextModel& model, const Request& request, int choice) {
  DecodeOptions options{.sampling = request.sampling,
      .depth = request.depth,
      .draft_vocabulary = request.draft_vocabulary,
      .max_tokens = request.max_tokens,
      .min_tokens = request.min_tokens,
      .stop_ids = request.stop_ids,
      .top_logprobs = request.top_logprobs};
  options.sampling.choice += static_cast<std::uint32_t>(choice);
  options.sampling.vocab_limit = model.vocab_limit();
  if (!request.ignore_eos) {
    options.stop_ids.insert(options.stop_ids.end(), model.stop_ids().begin(), model.stop_ids().end());
  }
  return options;
}

Answering::Answering(const TextModel& model, Sequence& sequence, const Request& request, int handle, OnPiece on_piece)
    : model_(model), sequence_(sequence), handle_(handle), on_piece_(std::move(on_piece)), cancel_(request.cancel) {
  if (model.has_tokenizer()) stream_.emplace(model.tokenizer(), request.stop);
  sequence_.on_token = [this](TokenId id) { return on_token(id); };
}

void Answering::cancel() {
  if (running()) sequence_.finish = Finish::cancelled;
}

void Answering::cancel_where_asked_to() {
  if (cancel_ != nullptr && cancel_->load()) cancel();
}

bool Answering::on_token(TokenId id) {
  const std::string text = stream_ ? stream_->push(id) : std::string();
  const bool stopped = stream_ && stream_->stopped();
  if (!give(text, id)) return stopped;
  ended_ = true;  // what is held back stays back: the caller has seen all it wanted
  return true;
}

bool Answering::give(const std::string& text, std::optional<TokenId> id) {
  text_ += text;
  if (!on_piece_) return false;
  // An exception must not cross the round, which has other sequences to finish.
  try {
    return !on_piece_({handle_, text, id});
  } catch (...) {
    error_ = std::current_exception();
    return true;
  }
}

void Answering::end() {
  if (ended_ || running()) return;
  ended_ = true;
  if (!stream_) return;
  const std::string rest = stream_->finish();
  if (!rest.empty()) (void)give(rest, std::nullopt);
}

Answer Answering::answer(MtpMode mode) {
  if (sequence_.finish == Finish::error) model_.explain(sequence_.problem);
  HeadOutcome head = head_outcome(model_.open(), mode, sequence_.stats);
  const auto answer_begins = sequence_.tokens.begin() + sequence_.prompt_length;
  return {.text = std::move(text_),
      .ids = {answer_begins, sequence_.tokens.end()},
      .prompt_ids = {sequence_.tokens.begin(), answer_begins},
      .logprobs = std::move(sequence_.log_probabilities),
      .finish = reason_of(sequence_.finish),
      .seed = sequence_.seed,
      .stats = std::move(sequence_.stats),
      .drafted = head.drafted,
      .head_reason = std::move(head.reason),
      .warning = std::move(head.warning)};
}

}  // namespace foresay
