// cli/bench/timed_model.h: a model that counts what its passes take.
#pragma once

#include <chrono>

#include "model/model.h"

namespace foresay::cli {

[[nodiscard]] inline double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// Everything is the model's own; results are read, so that a lazy lane has computed them when the clock stops.
class TimedModel final : public Model {
 public:
  explicit TimedModel(const Model& model) : model_(model) {}

  struct Times {
    double pass_ms = 0, draft_ms = 0;
    long passes = 0, draft_steps = 0;  ///< a head pass that only fills its cache is time, but no step
  };
  [[nodiscard]] const Times& times() const { return times_; }
  void reset() { times_ = {}; }

  [[nodiscard]] const ModelInfo& info() const override { return model_.info(); }
  [[nodiscard]] const Contract& contract() const override { return model_.contract(); }
  [[nodiscard]] Ops& ops() const override { return model_.ops(); }
  [[nodiscard]] std::unique_ptr<CacheSet> make_caches() const override { return model_.make_caches(); }
  [[nodiscard]] HeadCaches make_head_caches() const override { return model_.make_head_caches(); }

  [[nodiscard]] Forward forward(const Pass& pass) const override {
    const auto start = std::chrono::steady_clock::now();
    Forward result = model_.forward(pass);
    if (result.logits.rows > 0) (void)ops().read(result.logits);
    times_.pass_ms += milliseconds_since(start);
    ++times_.passes;
    return result;
  }

  [[nodiscard]] HeadForward draft(const HeadPass& pass) const override {
    const auto start = std::chrono::steady_clock::now();
    HeadForward result = model_.draft(pass);
    if (result.logits.rows > 0) (void)ops().read(result.logits);
    times_.draft_ms += milliseconds_since(start);
    times_.draft_steps += result.logits.rows > 0 ? 1 : 0;
    return result;
  }

 private:
  const Model& model_;
  mutable Times times_;  // engine thread only, as the model
};

}  // namespace foresay::cli
