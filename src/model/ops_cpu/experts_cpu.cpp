// CPU lane: routed experts. Rows that go to the same expert share a reading of its weights.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/row_ops.h"
#include "model/ops_cpu/ops_cpu.h"

namespace foresay {
namespace {

/// Where the rows of a pass go. Entry r * chosen + i is the i-th choice of row r.
struct Routes {
  int chosen = 0;
  std::vector<int> experts;
  std::vector<float> weights;
  std::vector<int> places;  ///< of each entry when entries are sorted by expert
  std::vector<int> first;   ///< [E + 1] first place of an expert
};

/// Scores of one row of router logits, in place. The sums run in order, so every instruction set gives the same bits.
void score(RouterSpec::Score kind, std::span<float> values) {
  const int n = static_cast<int>(values.size());
  if (kind == RouterSpec::Score::sigmoid) {
    for (float& value : values) value = -value;
    exp_row(values.data(), n, values.data());
    for (float& value : values) value = 1.0f / (1.0f + value);
    return;
  }
  const float highest = *std::ranges::max_element(values);
  for (float& value : values) value -= highest;
  exp_row(values.data(), n, values.data());
  const float total = std::accumulate(values.begin(), values.end(), 0.0f);
  for (float& value : values) value /= total;
}

/// The choices of one row, best first, and their weights.
void choose(const RouterSpec& spec, std::span<const float> logits, std::span<int> experts, std::span<float> weights) {
  thread_local std::vector<float> scores, keys;
  thread_local std::vector<int> order;
  scores.assign(logits.begin(), logits.end());
  score(spec.score, scores);
  keys = scores;
  for (int e = 0; e < spec.bias.size; ++e) keys[static_cast<std::size_t>(e)] += cpu::data(spec.bias)[e];
  for (float& key : keys) {
    if (std::isnan(key)) key = -std::numeric_limits<float>::infinity();  // a broken row is ordered like any other
  }
  order.resize(keys.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int e) { return keys[static_cast<std::size_t>(e)]; };
  std::partial_sort(order.begin(), order.begin() + spec.chosen, order.end(),
      [&](int a, int b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
  float total = 0;
  for (std::size_t i = 0; i < experts.size(); ++i) {
    experts[i] = order[i];
    weights[i] = scores[static_cast<std::size_t>(order[i])];
    total += weights[i];
  }
  for (float& weight : weights) weight = (spec.normalise ? weight / (total + 1e-20f) : weight) * spec.factor;
}

void sort_by_expert(Routes& routes, int count) {
  routes.first.assign(static_cast<std::size_t>(count) + 1, 0);
  for (const int e : routes.experts) ++routes.first[static_cast<std::size_t>(e) + 1];
  std::partial_sum(routes.first.begin(), routes.first.end(), routes.first.begin());
  std::vector<int> next(routes.first.begin(), routes.first.end() - 1);
  routes.places.clear();
  for (const int e : routes.experts) routes.places.push_back(next[static_cast<std::size_t>(e)]++);
}

}  // namespace

Experts CpuOps::experts(std::span<const StoredMatrix> each) {
  auto weights = std::make_shared<cpu::ExpertWeights>();
  for (const StoredMatrix& stored : each) weights->each.push_back(cpu::weights_of(stored));
  return {static_cast<int>(each.size()), each.front().out, each.front().in, std::move(weights)};
}

Tensor CpuOps::routed_mlp(
    const RouterSpec& spec, const ExpertMlps& experts, const Tensor& x, const Tensor& logits, const Tensor& residual) {
  const ProfileScope timed(profile(), "routed_mlp");
  const int count = experts.gate.count, width = experts.gate.out;
  cpu::check(logits.rows == x.rows && logits.width == count && spec.chosen >= 1 && spec.chosen <= count, "routed_mlp",
      "router logits have the wrong shape");
  cpu::check(
      experts.gate.in == x.width && experts.down.out == x.width && residual.rows == x.rows && residual.width == x.width,
      "routed_mlp", "shapes differ");

  Routes routes;
  routes.chosen = spec.chosen;
  const auto chosen = static_cast<std::size_t>(spec.chosen);
  routes.experts.resize(static_cast<std::size_t>(x.rows) * chosen);
  routes.weights.resize(routes.experts.size());
  for_rows(x.rows, [&](int r) {
    const std::size_t at = static_cast<std::size_t>(r) * chosen;
    choose(spec, {cpu::row(logits, r), static_cast<std::size_t>(count)}, {&routes.experts[at], chosen},
        {&routes.weights[at], chosen});
  });
  sort_by_expert(routes, count);

  const int entries = static_cast<int>(routes.experts.size());
  cpu::Builder gathered = make(entries, x.width);
  for (int i = 0; i < entries; ++i) {
    std::copy_n(cpu::row(x, i / spec.chosen), x.width, gathered.row(routes.places[static_cast<std::size_t>(i)]));
  }
  const Tensor inputs = std::move(gathered).done();
  const auto add_product = [&](std::vector<Product>& products, const Experts& w, int e, const cpu::Builder& out) {
    const int first = routes.first[static_cast<std::size_t>(e)];
    const int rows = routes.first[static_cast<std::size_t>(e) + 1] - first;
    if (rows == 0) return;
    const WeightView& view = cpu::view(w, e);
    products.push_back(
        {.w = &view, .out = out.row(first), .outputs = view.out, .which = nullptr, .first_row = first, .rows = rows});
  };

  cpu::Builder gate = make(entries, width), up = make(entries, width);
  std::vector<Product> products;
  for (int e = 0; e < count; ++e) {
    add_product(products, experts.gate, e, gate);
    add_product(products, experts.up, e, up);
  }
  if (!products.empty()) multiply(inputs, products);
  for_rows(entries, [&](int i) { swiglu_row(gate.row(i), up.row(i), experts.limit, width, gate.row(i)); });
  const Tensor inner = std::move(gate).done();

  cpu::Builder outputs = make(entries, x.width);
  products.clear();
  for (int e = 0; e < count; ++e) add_product(products, experts.down, e, outputs);
  if (!products.empty()) multiply(inner, products);

  cpu::Builder out = make(x.rows, x.width);
  for_rows(x.rows, [&](int r) {
    float* y = out.row(r);
    std::fill_n(y, x.width, 0.0f);
    for (int i = r * spec.chosen; i < (r + 1) * spec.chosen; ++i) {
      const float* from = outputs.row(routes.places[static_cast<std::size_t>(i)]);
      const float weight = routes.weights[static_cast<std::size_t>(i)];
      for (int d = 0; d < x.width; ++d) y[d] += weight * from[d];
    }
    add_row(cpu::row(residual, r), y, x.width, y);
  });
  return std::move(out).done();
}

}  // namespace foresay
