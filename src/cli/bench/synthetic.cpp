#include "cli/bench/synthetic.h"

#include "base/error.h"
#include "cli/option_values.h"

namespace foresay::cli {

std::vector<double> parse_rates(const std::string& text, int depth) {
  std::vector<double> rates;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const auto rate = parse_double(std::string_view(text).substr(at, end - at));
    if (!rate || *rate < 0 || *rate > (rates.empty() ? 1.0 : rates.back())) {
      fail(ErrorCode::usage, "--synthetic-acceptance: {}",
          mismatch("rates from 1 to 0 by draft position, none above the one before it, 0.85,0.72,0.60", text));
    }
    rates.push_back(*rate);
    at = end + 1;
  }
  if (static_cast<int>(rates.size()) < depth) {
    fail(ErrorCode::usage, "--synthetic-acceptance: expected a rate for each of the {} positions of --depth, found {}",
        depth, rates.size());
  }
  return rates;
}

SyntheticChance::SyntheticChance(std::vector<double> rates, KeyedNoise noise) : real_(noise) {
  double before = 1;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    conditional_.push_back(before > 0 ? rates[i] / before : 0);
    due_.push_back(noise.uniform(static_cast<std::uint32_t>(i), Purpose::accept));
    before = rates[i];
  }
}

void SyntheticChance::begin_draft() {
  drafting_ = true;
  drafted_.clear();
}

void SyntheticChance::end_draft() {
  drafting_ = false;
}

bool SyntheticChance::survives(std::size_t position) {
  due_[position] += conditional_[position];
  if (due_[position] < 1) return false;
  due_[position] -= 1;
  return true;
}

TokenId SyntheticChance::draw(const Distribution& d, std::uint32_t index, Purpose purpose) {
  const TokenId own = real_.draw(d, index, purpose);
  if (drafting_) {
    if (drafted_.empty()) first_index_ = index;
    drafted_.push_back(own);
    return own;
  }
  const std::size_t position = index - first_index_;
  // A residual draw follows a rejection, or is the bonus behind the block.
  if (purpose == Purpose::residual || index < first_index_ || position >= drafted_.size()) return own;
  if (survives(position)) return drafted_[position];
  if (own != drafted_[position]) return own;
  return own > 0 ? own - 1 : own + 1;  // any other token
}

bool SyntheticChance::happens(double probability, std::uint32_t index, Purpose purpose) {
  if (purpose != Purpose::accept) return real_.happens(probability, index, purpose);
  return survives(index - first_index_);
}

}  // namespace foresay::cli
