#include "decode/cost/cost_model.h"

#include <algorithm>

namespace foresay {
namespace {

double at(const PassCost& cost, int measured, int positions) {
  return std::max(cost.ms + cost.ms_per_position * (positions - measured), 0.0);
}

}  // namespace

double CostModel::pass_ms(int rows, int positions) const {
  if (passes.size() == 1) return at(passes.front(), context, positions) * rows / passes.front().rows;
  // The segment that holds `rows`; the first and the last one go on for ever.
  std::size_t right = 1;
  while (right + 1 < passes.size() && passes[right].rows < rows) ++right;
  const PassCost &a = passes[right - 1], &b = passes[right];
  const double from = at(a, context, positions), to = at(b, context, positions);
  return std::max(from + (to - from) * (rows - a.rows) / (b.rows - a.rows), 0.0);
}

double CostModel::draft_ms(int positions) const {
  return draft.rows == 0 ? 0 : at(draft, context, positions);
}

double CostModel::round_ms(int depth, int positions) const {
  return pass_ms(depth + 1, positions) + depth * draft_ms(positions);
}

double CostModel::tokens_per_second(int depth, std::span<const double> acceptance, int positions) const {
  double tokens = 1;
  for (int i = 0; i < depth && i < static_cast<int>(acceptance.size()); ++i) {
    tokens += acceptance[static_cast<std::size_t>(i)];
  }
  return 1000 * tokens / round_ms(depth, positions);
}

std::optional<double> CostModel::break_even(int depth, int positions) const {
  const double needed = round_ms(depth, positions) / pass_ms(1, positions);  // tokens per round
  const auto tokens = [depth](double survival) {
    double sum = 1, all = 1;
    for (int i = 0; i < depth; ++i) sum += all *= survival;
    return sum;
  };
  if (needed > tokens(1)) return std::nullopt;
  double low = 0, high = 1;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (tokens(middle) < needed ? low : high) = middle;
  }
  return high;
}

}  // namespace foresay
