// decode/choice_tree.h: every outcome of a random procedure, with its exact probability.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "decode/sample/chance.h"

namespace foresay {

/// A Chance that takes each branch of each choice once. Run the procedure under test inside for_each_outcome.
class ChoiceTree : public Chance {
 public:
  /// Calls `procedure()` once per leaf of the tree of choices it makes, then `leaf(probability)`.
  template <typename Procedure, typename Leaf>
  void for_each_outcome(Procedure procedure, Leaf leaf) {
    path_.clear();
    do {
      depth_ = 0;
      probability_ = 1;
      keys_.clear();
      coins_.clear();
      const auto outcome = procedure();
      ASSERT_EQ(depth_, path_.size()) << "the procedure is not a function of its choices";
      leaf(outcome, probability_);
    } while (advance());
  }

  TokenId draw(const Distribution& d, std::uint32_t index, Purpose purpose) override {
    EXPECT_FALSE(d.ids().empty());
    use_key(index, purpose);
    return d.ids()[choose(d.p())];
  }

  bool happens(double probability, std::uint32_t index, Purpose purpose) override {
    if (purpose == Purpose::xtc) return coin(probability, index);
    use_key(index, purpose);
    return flip(probability);
  }

 private:
  struct Fork {
    std::vector<double> odds;
    std::size_t taken = 0;
  };

  bool flip(double probability) {
    if (probability <= 0) return false;
    if (probability >= 1) return true;
    return choose({probability, 1 - probability}) == 0;
  }

  /// A position's coin falls once, whoever looks at it.
  bool coin(double probability, std::uint32_t index) {
    const auto known = coins_.find(index);
    if (known != coins_.end()) return known->second;
    return coins_[index] = flip(probability);
  }

  std::size_t choose(const std::vector<double>& odds) {
    if (depth_ == path_.size()) path_.push_back({odds, 0});
    const Fork& fork = path_[depth_++];
    probability_ *= fork.odds[fork.taken];
    return fork.taken;
  }

  /// Choices of one run are independent only if no two share a key.
  void use_key(std::uint32_t index, Purpose purpose) {
    EXPECT_TRUE(keys_.emplace(index, purpose).second) << "index " << index << " purpose " << static_cast<int>(purpose);
  }

  bool advance() {
    while (!path_.empty() && path_.back().taken + 1 == path_.back().odds.size()) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
  }

  std::vector<Fork> path_;
  std::size_t depth_ = 0;
  double probability_ = 1;
  std::set<std::pair<std::uint32_t, Purpose>> keys_;
  std::map<std::uint32_t, bool> coins_;
};

}  // namespace foresay
