// cli/bench/synthetic.h: drafts that survive at given rates, so that speed can be measured with random weights.
#pragma once

#include <string>
#include <vector>

#include "decode/draft/drafter.h"
#include "decode/sample/chance.h"

namespace foresay::cli {

/// "0.85,0.72,0.60": the share of blocks whose draft at each position survives, so never rising. Throws
/// ErrorCode::usage.
[[nodiscard]] std::vector<double> parse_rates(const std::string& text, int depth);

/// The choices of a sequence whose drafts survive by rate. Every draw is made, so that sampling costs what it costs;
/// what it gave is then replaced by the drafted token or by another one. Emitted tokens mean nothing: this lives in
/// `bench` alone. Survivals are spread evenly (a counter per position, not a coin), so that a short run already has the
/// rates that were asked for; the seed says where in the pattern it begins.
class SyntheticChance final : public Chance {
 public:
  SyntheticChance(std::vector<double> rates, KeyedNoise noise);

  /// Around the drafter's propose(): draws in between are drafts.
  void begin_draft();
  void end_draft();

  [[nodiscard]] TokenId draw(const Distribution& d, std::uint32_t index, Purpose purpose) override;
  [[nodiscard]] bool happens(double probability, std::uint32_t index, Purpose purpose) override;

 private:
  [[nodiscard]] bool survives(std::size_t position);

  KeyedChance real_;
  std::vector<double> conditional_;  ///< rate of each position, given that those before it survived
  std::vector<double> due_;          ///< by position: a survival is due when this reaches 1
  bool drafting_ = false;
  std::uint32_t first_index_ = 0;
  std::vector<TokenId> drafted_;  ///< of the current block
};

/// A drafter that tells the chance of its one sequence when it drafts.
class SyntheticDrafter final : public Drafter {
 public:
  SyntheticDrafter(Drafter& drafter, SyntheticChance& chance) : drafter_(drafter), chance_(chance) {}

  [[nodiscard]] int max_depth() const override { return drafter_.max_depth(); }
  [[nodiscard]] std::unique_ptr<DraftState> begin() override { return drafter_.begin(); }
  [[nodiscard]] std::unique_ptr<DraftState> fork(DraftState& state) override { return drafter_.fork(state); }
  void observe(Sequence& sequence, const Tensor& hidden) override { drafter_.observe(sequence, hidden); }
  [[nodiscard]] std::vector<DraftBlock> propose(
      std::span<Sequence* const> sequences, std::span<const int> depths) override {
    chance_.begin_draft();
    std::vector<DraftBlock> blocks = drafter_.propose(sequences, depths);
    chance_.end_draft();
    return blocks;
  }

 private:
  Drafter& drafter_;
  SyntheticChance& chance_;
};

}  // namespace foresay::cli
