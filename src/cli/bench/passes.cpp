// foresay bench passes: what a verify pass costs by its rows, what a draft step costs, and how near that is to the
// memory's own speed.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "cli/bench/bandwidth.h"
#include "cli/bench/benches.h"
#include "cli/bench/reading.h"
#include "cli/bench/subject.h"
#include "cli/option_values.h"
#include "cli/output.h"

namespace foresay::cli {
namespace {

constexpr int kMostRows = 64;

struct Options {
  SubjectOptions subject;
  std::string rows = "1,2,3,4,6,8,16";
  int context = 128, repeats = 10, buffer_mib = 1024;
};

/// Always with one row, to which the others are compared.
std::vector<int> parse_rows(const std::string& text) {
  std::vector<int> rows = {1};
  for (const TokenId count : parse_ids("--rows", text)) {
    if (count < 1 || count > kMostRows) {
      fail(ErrorCode::usage, "--rows: {}", mismatch(fmt::format("numbers from 1 to {}, 1,2,4", kMostRows), text));
    }
    if (count > 1) rows.push_back(count);
  }
  return rows;
}

int run(const Options& options) {
  const std::vector<int> rows = parse_rows(options.rows);
  const Subject subject(options.subject);
  Reading reading(subject, options.context);
  const bool has_head = subject.open().has_head();

  const ReadMeter meter(subject.threads(), static_cast<std::size_t>(options.buffer_mib) << 20);

  // In turns, so that a neighbour on the machine slows all of them; what is compared is compared within a turn.
  std::vector<double> bandwidth, draft_taken;
  std::vector<std::vector<double>> taken(rows.size());
  for (int i = -1; i < options.repeats; ++i) {
    (void)reading.pass_ms(1);  // threads sleep during the measurement of memory; in decoding, passes follow each other
    for (std::size_t at = 0; at < rows.size(); ++at) taken[at].push_back(reading.pass_ms(rows[at]));
    draft_taken.push_back(has_head ? reading.draft_ms() : 0);
    bandwidth.push_back(meter.gbps());
    if (i >= 0) continue;  // the first turn only warms up
    for (auto& each : taken) each.clear();
    draft_taken.clear();
    bandwidth.clear();
  }

  auto roof = subject.line("bandwidth");
  roof["threads"] = subject.threads();
  roof["gbps"] = rounded(median(bandwidth));
  roof["best_gbps"] = rounded(std::ranges::max(bandwidth));
  write_json(roof);
  const double one_row = median(taken.front());
  const auto print = [&](const char* bench, int count, const std::vector<double>& all_ms, double bytes) {
    std::vector<double> shares;
    for (std::size_t i = 0; i < all_ms.size(); ++i) shares.push_back(bytes / (all_ms[i] * 1e6) / bandwidth[i]);
    const double ms = median(all_ms);
    auto line = subject.line(bench);
    line["rows"] = count;
    line["context"] = options.context;
    line["repeats"] = options.repeats;
    line["ms"] = rounded(ms);
    line["ratio"] = rounded(ms / one_row);
    line["mbytes"] = rounded(bytes / 1e6);
    line["gbps"] = rounded(bytes / (ms * 1e6));
    line["share_of_bandwidth"] = rounded(median(shares));
    write_json(line);
  };
  for (std::size_t at = 0; at < rows.size(); ++at) {
    print("pass", rows[at], taken[at], subject.trunk_bytes() + reading.cache_bytes());
  }
  if (has_head) print("draft_step", 1, draft_taken, subject.head_bytes() + reading.head_cache_bytes());
  return 0;
}

}  // namespace

std::function<int()> add_bench_passes(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_subject_options(app, options->subject);
  app.add_option("--rows", options->rows, "Rows of the passes; one row is always measured")
      ->check(not_empty())
      ->capture_default_str();
  app.add_option("--context", options->context, "Tokens in the caches before a pass")
      ->check(whole_number(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--repeats", options->repeats, "Runs of each; the median counts")
      ->check(whole_number(1, 10000))
      ->capture_default_str();
  app.add_option(
         "--read-buffer", options->buffer_mib, "MiB that the bandwidth is measured over; several times the last cache")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  app.footer(
      "Prints the bandwidth, then a line per number of rows: ms, ratio to one row, gbps (weights and caches read once "
      "per "
      "pass)\nand its share of the bandwidth of the same turn; then the same for a step of the head.\n\nExample:\n  "
      "foresay bench passes "
      "--shape qwen3_5-0.8b --bits 4 --rows 1,2,4,8");
  return [options] { return run(*options); };
}

}  // namespace foresay::cli
