#include "decode/lossless/goodness_of_fit.h"

#include <cmath>
#include <limits>
#include <vector>

namespace foresay {
namespace {

constexpr double kFewest = 5;  // expected in a cell, the usual rule for Pearson's test

/// P(a, x), the regularised incomplete gamma function, by its power series; for x < a + 1.
double lower_gamma(double a, double x) {
  double term = 1 / a, sum = term;
  for (double n = a + 1; std::abs(term) > std::abs(sum) * 1e-16; ++n) {
    term *= x / n;
    sum += term;
  }
  return sum * std::exp(a * std::log(x) - x - std::lgamma(a));
}

/// Q(a, x) = 1 - P(a, x) by its continued fraction (Lentz); for x >= a + 1.
double upper_gamma(double a, double x) {
  constexpr double kTiny = std::numeric_limits<double>::min() / 1e-16;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int i = 1; i < 10000; ++i) {
    const double factor = -i * (i - a);
    b += 2;
    d = factor * d + b;
    d = 1 / (std::abs(d) < kTiny ? kTiny : d);
    c = b + factor / c;
    c = std::abs(c) < kTiny ? kTiny : c;
    h *= d * c;
    if (std::abs(d * c - 1) < 1e-15) break;
  }
  return h * std::exp(a * std::log(x) - x - std::lgamma(a));
}

}  // namespace

double chi_square_tail(double x, int freedom) {
  if (freedom <= 0 || x <= 0) return 1;
  const double a = freedom / 2.0, half = x / 2;
  return half < a + 1 ? 1 - lower_gamma(a, half) : upper_gamma(a, half);
}

void GoodnessOfFit::add(const std::map<TokenId, int>& counts, const Distribution& expected) {
  double draws = 0;
  for (const auto& [id, count] : counts) {
    draws += count;
    impossible_ = impossible_ || expected.probability(id) <= 0;
  }
  struct Cell {
    double expected = 0, seen = 0;
  };
  std::vector<Cell> cells;
  Cell rare;
  for (std::size_t i = 0; i < expected.ids().size(); ++i) {
    const auto found = counts.find(expected.ids()[i]);
    const Cell cell = {draws * expected.p()[i], found == counts.end() ? 0.0 : found->second};
    if (cell.expected >= kFewest) {
      cells.push_back(cell);
    } else {
      rare.expected += cell.expected;
      rare.seen += cell.seen;
    }
  }
  if (rare.expected >= kFewest || cells.empty()) {
    cells.push_back(rare);
  } else {
    cells.back().expected += rare.expected;
    cells.back().seen += rare.seen;
  }
  if (cells.size() < 2) return;
  for (const Cell& cell : cells)
    statistic_ += (cell.seen - cell.expected) * (cell.seen - cell.expected) / cell.expected;
  freedom_ += static_cast<int>(cells.size()) - 1;
}

double GoodnessOfFit::p_value() const {
  return impossible_ ? 0 : chi_square_tail(statistic_, freedom_);
}

}  // namespace foresay
