#include "cli/chat/session.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/option_values.h"
#include "text/text_stream.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::ordered_json;

long sum(const std::vector<long>& values) {
  return std::accumulate(values.begin(), values.end(), 0L);
}

}  // namespace

ChatSession::ChatSession(const TextModel& model, DecodeOptions options, std::string system)
    : model_(model), options_(std::move(options)), system_(std::move(system)) {
  (void)prompt_with("Hello");
}

std::vector<TokenId> ChatSession::prompt_with(const std::string& message) const {
  Json all = Json::array();
  if (!system_.empty()) all.push_back({{"role", "system"}, {"content", system_}});
  for (const Json& said : messages_) all.push_back(said);
  all.push_back({{"role", "user"}, {"content", message}});
  return model_.tokenizer().encode(model_.chat_prompt(all));
}

ChatAnswer ChatSession::answer(const std::string& message, const std::function<void(std::string_view)>& show) {
  expect_utf8("the message", message);
  GenerateRequest request;
  request.prompt = prompt_with(message);
  const int context = model_.model().info().context, length = static_cast<int>(request.prompt.size());
  if (length >= context) {
    fail(ErrorCode::usage,
        "the conversation with this message has {} tokens, but the context of this checkpoint is {} and the answer "
        "needs one at least; say less, or begin anew with /reset",
        length, context);
  }
  request.options = options_;
  if (options_.sampling.seed) *request.options.sampling.seed += static_cast<std::uint64_t>(turn_);
  request.cancel = &interrupted();

  ChatAnswer answer;
  TextStream stream(model_.tokenizer(), {});
  const auto put = [&](const std::string& piece) {
    answer.text += piece;
    if (show && !piece.empty()) show(piece);
  };
  request.on_token = [&](TokenId id) {
    if (std::ranges::find(options_.stop_ids, id) == options_.stop_ids.end()) put(stream.push(id));
    return false;
  };
  answer.generation = generate(model_.model(), options_.depth > 0 ? model_.drafter() : nullptr, request);
  put(stream.finish());
  if (answer.generation.finish == Finish::error) model_.explain(answer.generation.problem);

  messages_.push_back({{"role", "user"}, {"content", message}});
  messages_.push_back({{"role", "assistant"}, {"content", answer.text}});
  ++turn_;
  const Stats& stats = answer.generation.stats;
  ++totals_.answers;
  totals_.tokens += stats.generated;
  totals_.passes += stats.passes;
  totals_.drafted += sum(stats.drafted);
  totals_.accepted += sum(stats.accepted);
  totals_.seconds += stats.decode_seconds;
  return answer;
}

void ChatSession::reset() {
  messages_.clear();
  turn_ = 0;
}

}  // namespace foresay::cli
