// foresay/foresay.h: the library: load a checkpoint, generate from prompts, one or several at once (docs/library.md).
//
// Threads: every function here may be called from any thread. A model lives on a thread of its own, which opens it,
// runs it and drops it; calls wait for each other there, a pass at a time. Callbacks run on that thread while the
// caller waits: keep them short; they may encode and decode, and must not generate with the same model
// (ErrorCode::usage).
//
// Errors: everything throws foresay::Error. Options are refused by name, with ErrorCode::usage, before anything is
// opened or decoded.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foresay/error.h"
#include "foresay/export.h"
#include "foresay/log_probabilities.h"
#include "foresay/sampling.h"
#include "foresay/stats.h"
#include "foresay/token.h"

namespace foresay {

class Engine;
class BatchState;

/// How a checkpoint is opened.
struct ModelOptions {
  /// The MTP head: on (one that is present but unusable is an error), auto (it is a warning), off, required.
  std::string mtp = "on";
  std::string lane = "auto";    ///< what computes: cpu, mlx, or auto (mlx where it has a GPU)
  std::string device = "auto";  ///< where the mlx lane computes: cpu, gpu, or auto (a GPU where there is one)
  int threads = 0;              ///< of the cpu lane, 0 to 1024; 0 is every core this process may use
  int prefill_chunk = 512;      ///< prompt rows per pass, 0 to 2^20; 0 is all at once. Changes no bit of the answer

  /// What the load decided, and what the user may want to mend. Called on the loading thread, also when the load fails.
  std::function<void(std::string_view)> on_note = nullptr, on_warning = nullptr;
};

/// Throws ErrorCode::usage naming the first option that is out of range.
FORESAY_API void validate(const ModelOptions& options);

/// What was loaded.
struct ModelDescription {
  std::string folder;
  std::string family;                  ///< "qwen3_5"
  std::string model_type;              ///< as config.json says
  std::string lane;                    ///< what computes: "cpu, 2 threads"
  int context = 0;                     ///< most tokens of one sequence, prompt and answer together
  int vocab = 0;                       ///< rows of the vocabulary matrix
  bool has_tokenizer = false;          ///< false: token ids only
  bool has_head = false;               ///< an MTP head was loaded
  int max_depth = 0;                   ///< deepest draft the head can make; 0 without a head
  std::string head_reason;             ///< why the head is there or not, in words
  std::vector<TokenId> stop_ids = {};  ///< tokens that end a turn, ascending
};

/// One turn of a conversation, for the checkpoint's chat template.
struct Message {
  std::string role;  ///< "system", "user", "assistant"
  std::string content;
};

/// One prompt and what to do with it. Exactly one of `prompt`, `messages` and `ids` is given.
struct Request {
  std::string prompt = {};              ///< text, encoded as it is; UTF-8
  std::vector<Message> messages = {};   ///< turns, put through the checkpoint's chat template
  std::string template_variables = {};  ///< with messages: a JSON object, {"enable_thinking": false}
  std::vector<TokenId> ids = {};        ///< token ids; need no tokenizer

  SamplingOptions sampling = {};  ///< greedy unless it says otherwise; vocab_limit is set by the model
  int depth = 3;                  ///< tokens drafted per pass, 0 to 8; 0 is plain decoding
  int draft_vocabulary = -1;  ///< drafts come from so many low ids, special tokens and the context's ids, 1 to 2^30;
                              ///< 0: from all; -1: as it pays. Changes the speed, not the answer
  int max_tokens = 256;       ///< 1 to 2^30
  int min_tokens = 0;         ///< 0 to max_tokens: no id ends the answer before so many are there; a stop text does
  std::optional<int> top_logprobs = std::nullopt;  ///< log-probabilities wanted: of each token and of so many others
  std::vector<std::string> stop = {};              ///< the answer ends before the first of these texts; UTF-8
  std::vector<TokenId> stop_ids = {};              ///< further ids that end the answer; such an id is its last one
  bool ignore_eos = false;                         ///< go on past the checkpoint's own end-of-turn tokens
  int n = 1;                                       ///< answers to this prompt, 1 to 1024
  const std::atomic<bool>* cancel = nullptr;       ///< looked at between passes; must outlive the generation
};

/// Throws ErrorCode::usage naming the first option that is out of range, contradictory or not a number. Needs no model:
/// what only a model can know (ids outside its vocabulary, a prompt longer than its context) is refused later.
FORESAY_API void validate(const Request& request);

/// A part of an answer, as it comes. Pieces of one answer concatenate to its text.
struct Piece {
  int answer = 0;             ///< which one: the handle in a batch, the index in generate_all()
  std::string_view text;      ///< whole characters of UTF-8, nothing of a stop string; often empty
  std::optional<TokenId> id;  ///< the token that came; none where the end of the answer sets free held-back text
};

/// True to go on, false to end this answer behind the piece. An exception ends it too and is thrown to the caller.
using OnPiece = std::function<bool(const Piece&)>;

enum class FinishReason {
  running,    ///< not finished yet
  stop,       ///< an end-of-turn token, a stop text, or the callback
  length,     ///< max_tokens or the context was reached
  cancelled,  ///< Request::cancel, RequestBatch::cancel() or take()
};

/// "stop", "length", ...
[[nodiscard]] FORESAY_API std::string_view name_of(FinishReason reason) noexcept;

/// What became of a request.
struct Answer {
  std::string text;          ///< empty where the checkpoint has no tokenizer
  std::vector<TokenId> ids;  ///< what was generated, the ending id included
  std::vector<TokenId> prompt_ids;
  std::vector<TokenLogProbabilities> logprobs;  ///< one per id where top_logprobs asked for them, else empty
  FinishReason finish = FinishReason::running;
  std::uint64_t seed = 0;  ///< of the noise; drawn where none was given. With it, the answer's number among n as
                           ///< sampling.choice and coupled acceptance the same ids come again
  Stats stats;
  bool drafted = false;     ///< the MTP head took part
  std::string head_reason;  ///< why the head took part or not, in words
  std::string warning;      ///< empty, or what is wrong with the head: the answer is not affected, its speed is
};

/// Several answers decoded together: their rows share each pass over the weights, and each answer is the one it would
/// be alone. Requests may be added while others run. Movable; keeps its model alive. Handles count from 0.
class RequestBatch {
 public:
  FORESAY_API ~RequestBatch();  ///< drops what still runs
  FORESAY_API RequestBatch(RequestBatch&&) noexcept;
  FORESAY_API RequestBatch& operator=(RequestBatch&&) noexcept;

  /// Takes a request in and returns the handle of its answer; with n > 1 of the first, the others follow. Encodes the
  /// prompt; decodes nothing. Throws as validate() does, ErrorCode::usage for a prompt that the model cannot take,
  /// ErrorCode::checkpoint for text where there is no tokenizer or template.
  FORESAY_API int add(const Request& request, OnPiece on_piece = nullptr);

  /// One pass for every answer that runs: a chunk of a prompt, or a round of draft, verify, accept. False when nothing
  /// is left to do. Throws what a callback threw, once the pass is done; the other answers can go on.
  FORESAY_API bool step();
  FORESAY_API void run();  ///< step() until nothing is left to do

  [[nodiscard]] FORESAY_API bool finished(int handle) const;
  FORESAY_API void cancel(int handle);  ///< ends it between passes; nothing where it has finished

  /// The answer, which the batch then forgets; one that still runs is cancelled. Throws ErrorCode::usage for a handle
  /// that is not in the batch; ErrorCode::checkpoint or internal where the logits were not finite, naming the damaged
  /// tensor where there is one; and as ModelOptions::mtp says where the head's were not.
  [[nodiscard]] FORESAY_API Answer take(int handle);

 private:
  friend class LanguageModel;
  explicit RequestBatch(std::shared_ptr<Engine> engine);
  std::unique_ptr<BatchState> state_;
};

/// A loaded checkpoint. Copies share it; the last of them and of its batches drops it.
class LanguageModel {
 public:
  /// Opens a checkpoint in the Hugging Face or MLX layout: a folder, or org/name[@revision] of the local Hugging Face
  /// cache (nothing is downloaded); "" is the bundled tiny-qwen3_5, where the installation has it. Throws
  /// ErrorCode::usage for options and checkpoints that are not there, checkpoint, unsupported or mtp_required as
  /// docs/errors.md says.
  [[nodiscard]] FORESAY_API static LanguageModel load(
      const std::string& folder_or_name, const ModelOptions& options = {});

  [[nodiscard]] FORESAY_API const ModelDescription& description() const;

  /// Ids of the text, special tokens written in it included; nothing is added. Throws ErrorCode::usage when it is not
  /// UTF-8, ErrorCode::checkpoint where there is no tokenizer.
  [[nodiscard]] FORESAY_API std::vector<TokenId> encode(std::string_view text) const;
  /// Text of the ids, special tokens left out unless asked for; bytes that are no UTF-8 become U+FFFD. Throws
  /// ErrorCode::usage for an id outside the vocabulary.
  [[nodiscard]] FORESAY_API std::string decode(const std::vector<TokenId>& ids, bool skip_special = true) const;

  /// The prompt that the chat template makes of the messages, ready for an answer. `variables` is a JSON object of
  /// further template variables. Throws ErrorCode::checkpoint without a template, ErrorCode::usage when the template
  /// refuses the messages.
  [[nodiscard]] FORESAY_API std::string chat_prompt(
      const std::vector<Message>& messages, std::string_view variables = "{}") const;
  /// The same for messages as a JSON array of objects, which may hold more than role and content: tool calls, parts.
  [[nodiscard]] FORESAY_API std::string chat_prompt_json(
      std::string_view messages, std::string_view variables = "{}") const;

  /// Decodes one request (n == 1) to its end.
  FORESAY_API Answer generate(const Request& request, OnPiece on_piece = nullptr) const;
  /// Decodes all requests together. Answers in the order of the requests, n for each. The first error ends them all.
  FORESAY_API std::vector<Answer> generate_all(
      const std::vector<Request>& requests, const OnPiece& on_piece = nullptr) const;

  /// An empty batch over this model.
  [[nodiscard]] FORESAY_API RequestBatch batch() const;

 private:
  explicit LanguageModel(std::shared_ptr<Engine> engine);
  std::shared_ptr<Engine> engine_;
};

}  // namespace foresay
