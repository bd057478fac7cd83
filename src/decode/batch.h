// decode/batch.h: sequences decoded together, which join and leave between steps.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "decode/sequence.h"

namespace foresay {

/// Every step reads one chunk of a waiting prompt and runs one round in which all other sequences share the target's
/// pass. Whoever takes part, each sequence gets what it would get alone: on the CPU lane the very ids,
/// log-probabilities and bits. Engine thread only.
class Batch {
 public:
  /// A null drafter is plain decoding. `model` and `drafter` must outlive this.
  ///   prefill_chunk  rows per prompt pass; <= 0: all at once
  explicit Batch(const Model& model, Drafter* drafter = nullptr, int prefill_chunk = 512)
      : model_(model), drafter_(drafter), prefill_chunk_(prefill_chunk) {}

  /// The sequence takes part from the next step on; prompts are read in the order of joining. It must not have been
  /// prefilled. The reference stays valid until leave().
  Sequence& join(std::unique_ptr<Sequence> sequence);

  /// Several sequences with the same prompt, which is read once. Throws ErrorCode::internal when prompts differ.
  void join(std::vector<std::unique_ptr<Sequence>> choices);

  /// Hands the sequence back, finished or not; the others do not notice. Throws ErrorCode::internal for one that is not
  /// here.
  [[nodiscard]] std::unique_ptr<Sequence> leave(const Sequence& sequence);

  /// One chunk and one round. Returns whether anything is still running. Finished sequences stay until they leave; one
  /// that its owner finished (Finish::cancelled) takes no further part, be it in reading its prompt.
  bool step();

  [[nodiscard]] std::size_t size() const { return sequences_.size(); }

 private:
  [[nodiscard]] bool is_reading(const Sequence* sequence) const;
  void stop_reading(Sequence& sequence);
  void read_prompt();
  void run_round();

  const Model& model_;
  Drafter* drafter_;
  int prefill_chunk_;
  std::vector<std::unique_ptr<Sequence>> sequences_;  ///< in order of joining
  std::vector<std::vector<Sequence*>> reading_;       ///< groups with one prompt each; the first is read first
};

}  // namespace foresay
