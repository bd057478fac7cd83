#include "cli/generate_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "library/head_outcome.h"

namespace foresay::cli {
namespace {

using Json = nlohmann::ordered_json;

Json token_json(TokenId id, double logprob, const TextModel& model) {
  return {{"id", id}, {"text", model.has_tokenizer() ? Json(model.tokenizer().token_bytes(id, false)) : Json()},
      {"logprob", logprob}};
}

std::string line(std::string_view name, std::string_view value) {
  return fmt::format("{:<20} {}\n", name, value);
}

std::string speed_line(const Stats& stats) {
  const std::string name = has_drafted(stats) ? fmt::format("MTP, depth {}", stats.depth) : "AR";
  return line(
      name, fmt::format("prompt {:.1f} tokens/s, decode {:.1f} tokens/s", stats.prompt_tok_s(), stats.decode_tok_s()));
}

std::string draft_lines(const Stats& stats) {
  if (!has_drafted(stats)) return {};
  return line("acceptance", acceptance_of(stats) + " (share of blocks, by draft position)") +
         line("tokens per pass", fmt::format("{:.2f}", stats.tokens_per_pass()));
}

}  // namespace

std::string_view name_of(Finish finish) {
  switch (finish) {
    case Finish::running:
      return "running";
    case Finish::stop:
      return "stop";
    case Finish::length:
      return "length";
    case Finish::error:
      return "error";
    case Finish::cancelled:
      return "cancelled";
  }
  return "?";
}

nlohmann::ordered_json answer_json(const Answer& answer, const Generator& generator) {
  Json out = {{"ids", answer.generation.ids}, {"text", generator.shows_text() ? Json(answer.text) : Json()},
      {"finish_reason", name_of(answer.generation.finish)}};
  const std::vector<TokenLogProbabilities>& rows = answer.generation.log_probabilities;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Json entry = token_json(answer.generation.ids[i], rows[i].value, generator.text());
    entry["top"] = Json::array();
    for (const LogProbability& other : rows[i].top)
      entry["top"].push_back(token_json(other.id, other.value, generator.text()));
    out["logprobs"].push_back(std::move(entry));
  }
  return out;
}

Stats total_of(std::span<const Answer> answers) {
  Stats total = answers.front().generation.stats;
  for (const Answer& answer : answers.subspan(1)) {
    const Stats& stats = answer.generation.stats;
    if (stats.generated > 0) total.generated += stats.generated - 1;  // its first token came from the prompt's pass
    total.passes += stats.passes;
    total.decode_seconds = std::max(total.decode_seconds, stats.decode_seconds);
    for (std::size_t i = 0; i < total.drafted.size(); ++i) {
      total.drafted[i] += stats.drafted[i];
      total.accepted[i] += stats.accepted[i];
    }
  }
  return total;
}

std::string acceptance_of(const Stats& stats) {
  std::string out;
  for (std::size_t i = 0; i < stats.drafted.size(); ++i) {
    if (i > 0) out += " / ";
    out += stats.drafted[i] == 0
               ? "-"
               : fmt::format("{:.2f}", static_cast<double>(stats.accepted[i]) / static_cast<double>(stats.drafted[i]));
  }
  return out;
}

bool has_drafted(const Stats& stats) {
  return !stats.drafted.empty() && stats.drafted[0] > 0;
}

nlohmann::ordered_json stats_json(const Stats& stats, const MtpOutcome& mtp) {
  return {{"prompt_tok_s", stats.prompt_tok_s()}, {"decode_tok_s", stats.decode_tok_s()}, {"passes", stats.passes},
      {"depth", stats.depth}, {"drafted", stats.drafted}, {"accepted", stats.accepted},
      {"tokens_per_pass", stats.tokens_per_pass()},
      {"mtp", {{"requested", mtp.requested}, {"effective", mtp.effective ? "on" : "off"}, {"reason", mtp.reason}}}};
}

std::string run_report(const Stats& stats) {
  return speed_line(stats) + draft_lines(stats);
}

std::string comparison_report(const Stats& plain, const Stats& drafted) {
  std::string report = speed_line(plain) + speed_line(drafted) + draft_lines(drafted);
  if (has_drafted(drafted) && plain.decode_tok_s() > 0) {
    report += line("decode speed", fmt::format("{:.2f} x AR", drafted.decode_tok_s() / plain.decode_tok_s()));
  }
  return report;
}

std::string poor_acceptance_warning(const Stats& stats) {
  const std::string problem = poor_acceptance(stats);
  return problem.empty() ? problem : fmt::format("warning: {}; the answer is not affected, the speed is\n", problem);
}

}  // namespace foresay::cli
