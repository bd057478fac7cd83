#include "decode/evaluate.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"

namespace foresay {
namespace {

void append(std::vector<float>& out, std::span<const float> values) {
  out.insert(out.end(), values.begin(), values.end());
}

/// Collects named tensors of the lane's passes as long as it lives. A name that comes again (the next chunk, the next
/// row of the head) continues the rows it has.
class Collector {
 public:
  Collector(Ops& ops, std::vector<NamedRows>& out) : ops_(ops), out_(out) { ops_.set_tap(&tap_); }
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  ~Collector() { ops_.set_tap(nullptr); }

 private:
  void add(const std::string& name, const Tensor& x) {
    const auto [at, is_new] = places_.try_emplace(name, out_.size());
    if (is_new) out_.push_back({name, x.width, {}});
    append(out_[at->second].values, ops_.read(x));
  }

  Ops& ops_;
  std::vector<NamedRows>& out_;
  std::map<std::string, std::size_t> places_;
  Tap tap_{[this](const std::string& name, const Tensor& x) { add(name, x); }};
};

/// A reused layer's steps for every row: pair t is genuine history, the deeper steps of its block are made from the
/// head's own states and leave again.
void evaluate_reused(
    const Model& model, std::span<const TokenId> ids, const Tensor& hidden, int depth, Evaluation& out) {
  Ops& ops = model.ops();
  const HeadCaches sets = model.make_head_caches();
  CacheSet& caches = *sets.front();
  const int positions = static_cast<int>(ids.size());
  const std::vector<int> only_row = {0};
  out.mtp_logits.resize(static_cast<std::size_t>(std::min(depth, positions - 1)));
  for (int t = 0; t + 1 < positions; ++t) {
    Tensor recycled = ops.select(hidden, std::vector<int>{t});
    for (int step = 1; step <= depth && t + step < positions; ++step) {
      HeadPass pass;
      pass.step = step;
      pass.hidden = recycled;
      pass.tokens = {ids[static_cast<std::size_t>(t + step)]};
      pass.slices = {{0, 1, &caches, false}};
      pass.output_rows = pass.logit_rows = only_row;
      HeadForward forward = model.draft(pass);
      append(out.mtp_logits[static_cast<std::size_t>(step - 1)], ops.read(forward.logits));
      recycled = std::move(forward.recycled);
    }
    caches.truncate(t + 1);
  }
}

/// With distinct layers a step is one pass over all rows whose token is known: every row is history of its layer.
void evaluate_layers(
    const Model& model, std::span<const TokenId> ids, const Tensor& hidden, int depth, Evaluation& out) {
  Ops& ops = model.ops();
  const HeadCaches sets = model.make_head_caches();
  const int positions = static_cast<int>(ids.size());
  Tensor input = hidden;
  for (int step = 1; step <= depth && step < positions; ++step) {
    const int rows = positions - step;
    HeadPass pass;
    pass.step = step;
    pass.hidden = ops.select(input, row_range(0, rows));
    pass.tokens.assign(ids.begin() + step, ids.end());
    pass.slices = {{0, rows, sets[static_cast<std::size_t>(step - 1)].get(), false}};
    pass.output_rows = pass.logit_rows = row_range(0, rows);
    HeadForward forward = model.draft(pass);
    const std::span<const float> logits = ops.read(forward.logits);
    out.mtp_logits.emplace_back(logits.begin(), logits.end());
    if (model.info().head_scheme == HeadScheme::chained) input = std::move(forward.recycled);
  }
}

}  // namespace

void check_ids(std::span<const TokenId> ids, const ModelInfo& info) {
  for (const TokenId id : ids) {
    if (id < 0 || id >= info.vocab)
      fail(ErrorCode::usage, "[eval] id {} is outside the vocabulary; expected 0 to {}", id, info.vocab - 1);
  }
}

Evaluation evaluate(const Model& model, std::span<const TokenId> ids, int depth, int chunk, bool layers) {
  const ModelInfo& info = model.info();
  const int positions = static_cast<int>(ids.size());
  if (positions == 0) fail(ErrorCode::usage, "[eval] no ids were given");
  if (positions > info.context) {
    fail(ErrorCode::usage, "[eval] {} ids were given; this checkpoint's context holds {}", positions, info.context);
  }
  check_ids(ids, info);

  Ops& ops = model.ops();
  Evaluation out;
  out.positions = positions;
  out.hidden = info.hidden;
  out.vocab = info.vocab;
  std::optional<Collector> collector;
  if (layers) collector.emplace(ops, out.layers);
  const auto caches = model.make_caches();
  const int step = chunk > 0 ? chunk : positions;
  std::vector<Tensor> handed;  // hidden states the head reads
  for (int first = 0; first < positions; first += step) {
    const int count = std::min(step, positions - first);
    Pass pass;
    pass.tokens.assign(ids.begin() + first, ids.begin() + first + count);
    pass.slices = {{0, count, caches.get(), false}};
    pass.logit_rows = row_range(0, count);
    const Forward forward = model.forward(pass);
    append(out.logits, ops.read(forward.logits));
    append(out.hidden_pre_norm, ops.read(forward.pre_norm));
    append(out.hidden_post_norm, ops.read(forward.post_norm));
    handed.push_back(model.head_input(forward));
  }
  const int steps = std::min(depth, info.max_depth);
  if (steps == 0 || positions == 1) return out;
  const bool is_reused = info.head_scheme == HeadScheme::reused;
  (is_reused ? evaluate_reused : evaluate_layers)(model, ids, ops.stack(handed), steps, out);
  return out;
}

}  // namespace foresay
