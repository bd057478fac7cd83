// The cost model: its arithmetic, measuring against a scripted clock, and what is kept between runs.
#include "decode/cost/cost_model.h"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <memory>
#include <stdexcept>

#include "decode/cost/cost_cache.h"
#include "decode/cost/measure_costs.h"
#include "decode/draft/mtp_drafter.h"
#include "decode/generate.h"
#include "fixtures/golden.h"
#include "fixtures/owned_tensor.h"
#include "fixtures/prefix_model.h"
#include "fixtures/temp_dir.h"

namespace foresay {
namespace {

CostModel example() {
  return {
      .context = 1, .passes = {{1, 10, 0.01}, {2, 11, 0.02}, {4, 14, 0.04}, {8, 26, 0.08}}, .draft = {1, 0.5, 0.001}};
}

TEST(CostModel, InterpolatesRowsAndGoesOnBeyondThem) {
  const CostModel costs = example();
  EXPECT_DOUBLE_EQ(costs.pass_ms(1, 1), 10);
  EXPECT_DOUBLE_EQ(costs.pass_ms(2, 1), 11);
  EXPECT_DOUBLE_EQ(costs.pass_ms(3, 1), 12.5);
  EXPECT_DOUBLE_EQ(costs.pass_ms(4, 1), 14);
  EXPECT_DOUBLE_EQ(costs.pass_ms(6, 1), 20);
  EXPECT_DOUBLE_EQ(costs.pass_ms(8, 1), 26);
  EXPECT_DOUBLE_EQ(costs.pass_ms(10, 1), 32);
  EXPECT_DOUBLE_EQ(costs.pass_ms(1, 1001), 20);
  EXPECT_DOUBLE_EQ(costs.pass_ms(3, 1001), 12.5 + 30);
  EXPECT_DOUBLE_EQ(costs.draft_ms(1001), 1.5);
}

TEST(CostModel, OnePointIsEnough) {
  const CostModel costs = {.context = 0, .passes = {{2, 10, 0.5}}, .draft = {}};
  EXPECT_DOUBLE_EQ(costs.pass_ms(1, 0), 5);
  EXPECT_DOUBLE_EQ(costs.pass_ms(4, 10), 30);
  EXPECT_DOUBLE_EQ(costs.draft_ms(10), 0);
}

TEST(CostModel, SpeedIsTokensOverTheTimeOfARound) {
  const CostModel costs = example();
  const std::array acceptance = {0.85, 0.72, 0.60};
  EXPECT_DOUBLE_EQ(costs.tokens_per_second(0, acceptance, 1), 100);
  EXPECT_DOUBLE_EQ(costs.tokens_per_second(1, acceptance, 1), 1000 * 1.85 / 11.5);
  EXPECT_DOUBLE_EQ(costs.tokens_per_second(3, acceptance, 1), 1000 * 3.17 / 15.5);
  EXPECT_DOUBLE_EQ(costs.tokens_per_second(4, acceptance, 1), 1000 * 3.17 / (17 + 2));  // nothing known of draft 4
}

TEST(CostModel, BreakEvenIsWhereBothSpeedsAreEqual) {
  const CostModel costs = example();
  EXPECT_NEAR(costs.break_even(1, 1).value(), 0.15, 1e-9);
  const double a = costs.break_even(3, 1).value();
  const std::array acceptance = {a, a * a, a * a * a};
  EXPECT_NEAR(costs.tokens_per_second(3, acceptance, 1), costs.tokens_per_second(0, {}, 1), 1e-6);
  const CostModel dear = {.context = 0, .passes = {{1, 10, 0}, {2, 21, 0}}, .draft = {1, 0, 0}};
  EXPECT_FALSE(dear.break_even(1, 0));
}

/// A cache that only counts. Where it is not `trimmable` it can undo provisional rows alone, as recurrent ones do.
class CountingCache final : public Cache {
 public:
  explicit CountingCache(bool trimmable) : trimmable_(trimmable) {}
  void append(int rows, bool provisional) {
    if (provisional_ > 0) throw std::logic_error("rows are appended while others wait for keep()");
    length_ += rows;
    provisional_ = provisional ? rows : 0;
  }

  [[nodiscard]] int length() const override { return length_; }
  [[nodiscard]] bool can_keep(int n) const override { return n >= 0 && n <= provisional_; }
  [[nodiscard]] bool can_truncate(int new_length) const override { return trimmable_ || new_length == length_; }
  void keep(int n) override {
    if (!can_keep(n)) throw std::logic_error("keep() of more rows than were appended");
    length_ -= provisional_ - n;
    provisional_ = 0;
  }
  void truncate(int new_length) override {
    if (!can_truncate(new_length)) throw std::logic_error("truncate() of a recurrent cache");
    length_ = new_length;
  }
  [[nodiscard]] std::shared_ptr<const CacheSnapshot> snapshot() override { throw std::logic_error("snapshot()"); }
  void restore(const CacheSnapshot&) override { throw std::logic_error("restore()"); }
  [[nodiscard]] std::size_t bytes() const override { return 0; }
  [[nodiscard]] CacheFootprint footprint() const override { return {}; }

 private:
  bool trimmable_;
  int length_ = 0, provisional_ = 0;
};

/// Two attention layers and a recurrent one whose passes take, by its own clock, what a formula says.
class TimedModel final : public Model {
 public:
  double now = 0;  ///< ms
  double base_ms = 9, row_ms = 1, draft_ms = 0.5;
  double position_ms = 0.01;  ///< of a row and an attention layer
  int forwards = 0;

  TimedModel() : ops_(make_cpu_ops(1)) {
    info_.layers = 3;
    info_.head_layers = 1;
    info_.vocab = 16;
    info_.hidden = 4;
    info_.context = 4096;
    info_.max_depth = 3;
  }
  void set_context(int context) { info_.context = context; }
  void drop_head() { info_.head_layers = info_.max_depth = 0; }
  MeasureOptions options(double budget) {
    return {.budget_ms = budget, .clock_ms = [this] { return now; }};
  }

  [[nodiscard]] const ModelInfo& info() const override { return info_; }
  [[nodiscard]] const Contract& contract() const override { return contract_; }
  [[nodiscard]] Ops& ops() const override { return *ops_; }
  [[nodiscard]] std::unique_ptr<CacheSet> make_caches() const override { return make({true, false, true}); }
  [[nodiscard]] HeadCaches make_head_caches() const override {
    HeadCaches sets;
    sets.push_back(make({true}));
    return sets;
  }
  [[nodiscard]] Forward forward(const Pass& pass) const override {
    auto& self = const_cast<TimedModel&>(*this);
    ++self.forwards;
    const Slice& slice = pass.slices.at(0);
    self.now += base_ms + slice.count * (row_ms + 2 * position_ms * slice.caches->length());
    append(slice, 3);
    return {zeros(slice.count, 4), zeros(slice.count, 4), zeros(static_cast<int>(pass.logit_rows.size()), 16)};
  }
  [[nodiscard]] HeadForward draft(const HeadPass& pass) const override {
    const Slice& slice = pass.slices.at(0);
    const double rows = static_cast<double>(pass.output_rows.size());  // the others only fill the cache
    const_cast<TimedModel&>(*this).now += rows * (draft_ms + position_ms * slice.caches->length());
    append(slice, 1);
    return {zeros(static_cast<int>(rows), 4), zeros(static_cast<int>(rows), 16)};
  }

 private:
  static std::unique_ptr<CacheSet> make(std::initializer_list<bool> trimmable) {
    std::vector<std::unique_ptr<Cache>> layers;
    for (const bool each : trimmable) layers.push_back(std::make_unique<CountingCache>(each));
    return std::make_unique<CacheSet>(std::move(layers));
  }
  static void append(const Slice& slice, int layers) {
    for (int i = 0; i < layers; ++i) {
      static_cast<CountingCache&>(slice.caches->layer(i)).append(slice.count, slice.provisional);
    }
  }
  [[nodiscard]] Tensor zeros(int rows, int width) const {
    return ops_->from_host(rows, width, std::vector<float>(static_cast<std::size_t>(rows * width)));
  }

  std::unique_ptr<Ops> ops_;
  ModelInfo info_;
  Contract contract_;
};

/// What the formula says: the same in every context and at every number of rows.
void expect_formula(const CostModel& costs, const TimedModel& model) {
  for (const int rows : {1, 2, 3, 4, 8, 9}) {
    for (const int positions : {1, 100, 4000}) {
      EXPECT_NEAR(costs.pass_ms(rows, positions),
          model.base_ms + rows * (model.row_ms + 2 * model.position_ms * positions), 1e-6)
          << rows << " " << positions;
    }
  }
}

TEST(MeasureCosts, FindsTheFormulaBehindTheTimes) {
  TimedModel model;
  const CostModel costs = measure_costs(model, model.options(1e6));
  EXPECT_EQ(costs.context, 1);
  ASSERT_EQ(costs.passes.size(), 4u);
  expect_formula(costs, model);
  EXPECT_NEAR(costs.draft_ms(1), 0.5, 1e-6);  // the head's cache is a pair behind
  EXPECT_NEAR(costs.draft_ms(4001), 0.5 + 40, 1e-6);
}

// 256 positions of the trunk do not fit into the budget; the head's attention tells what they cost.
TEST(MeasureCosts, ALongContextIsMeasuredInTheHeadWhereTheTrunkIsSlow) {
  TimedModel model;
  model.base_ms = 80;
  const CostModel costs = measure_costs(model, model.options(1500));
  EXPECT_LE(model.now, 1500);
  ASSERT_EQ(costs.passes.size(), 4u);
  EXPECT_NEAR(costs.draft_ms(4001), 0.5 + 40, 1e-6);
  // The times of the short context hold its first position already.
  expect_formula(costs, model);
}

TEST(MeasureCosts, KeepsToItsBudget) {
  for (const double budget : {100.0, 300.0, 1500.0}) {
    TimedModel model;
    (void)measure_costs(model, model.options(budget));
    EXPECT_LE(model.now, budget) << budget;
  }
}

// What only noise can do.
TEST(MeasureCosts, ABiggerPassNeverLooksCheaper) {
  TimedModel model;
  model.base_ms = 30;
  model.row_ms = -1;
  model.position_ms = -0.0001;
  const CostModel costs = measure_costs(model, model.options(1e6));
  for (const int positions : {1, 4000}) {
    for (int rows = 1; rows < 10; ++rows)
      EXPECT_LE(costs.pass_ms(rows, positions), costs.pass_ms(rows + 1, positions) + 1e-9);
    EXPECT_GT(costs.pass_ms(1, positions), 0);
  }
}

// Passes that take longer than all of the budget: each once, and only what must be known.
TEST(MeasureCosts, ABigModelIsMeasuredOnceAtOneAndFourRows) {
  TimedModel model;
  model.base_ms = 2000;
  const CostModel costs = measure_costs(model, model.options(1500));
  EXPECT_EQ(model.forwards, 3);  // with the warm-up
  ASSERT_EQ(costs.passes.size(), 2u);
  EXPECT_EQ(costs.passes[0].rows, 1);
  EXPECT_EQ(costs.passes[1].rows, 4);
  EXPECT_NEAR(costs.pass_ms(1, 1), 2001.02, 1e-6);
  EXPECT_NEAR(costs.pass_ms(8, 1), 2008.16, 1e-6);
  EXPECT_GT(costs.draft_ms(1), 0);
}

TEST(MeasureCosts, ShortContextsAndNoHeadAreMeasuredToo) {
  TimedModel model;
  model.set_context(20);
  model.drop_head();
  const CostModel costs = measure_costs(model, model.options(1500));
  ASSERT_EQ(costs.passes.size(), 4u);
  EXPECT_EQ(costs.passes[0].ms_per_position, 0);
  EXPECT_EQ(costs.draft.rows, 0);
  EXPECT_NEAR(costs.pass_ms(8, 1), 17.16, 1e-6);
}

TEST(MeasureCosts, AClockThatStandsStillEndsToo) {
  PrefixModel model;
  const CostModel costs = measure_costs(model, {.budget_ms = 1500, .clock_ms = [] { return 5.0; }});
  EXPECT_EQ(costs.passes.size(), 4u);
}

// The same ids before and after, and in a sequence that was half decoded when costs were measured.
TEST(MeasureCosts, LeavesNoTrace) {
  const OpenedModel model(bundled_model("tiny-qwen3_5"));
  const std::vector<TokenId> prompt = {259, 497, 259, 304, 12, 7};
  const auto decode = [&](bool measure) {
    MtpDrafter drafter(*model);
    GenerateRequest request;
    request.prompt = prompt;
    request.options.max_tokens = 40;
    int tokens = 0;
    request.on_token = [&](TokenId) {
      if (measure && ++tokens == 20) (void)measure_costs(*model, {.budget_ms = 30});
      return false;
    };
    return generate(*model, &drafter, request);
  };
  const Generation before = decode(false), during = decode(true), after = decode(false);
  EXPECT_EQ(before.ids, during.ids);
  EXPECT_EQ(before.ids, after.ids);
  EXPECT_EQ(before.stats.passes, during.stats.passes);
  EXPECT_EQ(before.stats.accepted, during.stats.accepted);
}

class CostCacheFiles : public ::testing::Test {
 protected:
  void expect_equal(const std::optional<CostModel>& got, const CostModel& want) {
    ASSERT_TRUE(got);
    EXPECT_EQ(got->context, want.context);
    ASSERT_EQ(got->passes.size(), want.passes.size());
    for (std::size_t i = 0; i < want.passes.size(); ++i) {
      EXPECT_EQ(got->passes[i].rows, want.passes[i].rows);
      EXPECT_EQ(got->passes[i].ms, want.passes[i].ms);
      EXPECT_EQ(got->passes[i].ms_per_position, want.passes[i].ms_per_position);
    }
    EXPECT_EQ(got->draft.rows, want.draft.rows);
    EXPECT_EQ(got->draft.ms, want.draft.ms);
  }

  TempDir dir_;
  CostCache cache_{dir_.path() / "a" / "costs"};
  CostKey key_{"model 5", "cpu \xff", "build"};
  Report report_;
};

TEST_F(CostCacheFiles, GiveBackWhatWasWritten) {
  EXPECT_FALSE(cache_.read(key_));
  cache_.write(key_, example(), report_);
  EXPECT_TRUE(report_.warnings().empty());
  expect_equal(cache_.read(key_), example());
  CostModel other = example();
  other.draft = {};
  other.passes.pop_back();
  cache_.write(key_, other, report_);
  expect_equal(cache_.read(key_), other);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir_.path() / "a" / "costs")) ++files;
  EXPECT_EQ(files, 1);
}

TEST_F(CostCacheFiles, AnotherKeyIsAnotherEntry) {
  cache_.write(key_, example(), report_);
  for (const CostKey& key : {CostKey{"model 6", key_.machine, key_.build}, CostKey{key_.checkpoint, "arm", key_.build},
           CostKey{key_.checkpoint, key_.machine, "other"}}) {
    EXPECT_FALSE(cache_.read(key));
    EXPECT_NE(cache_.file_of(key), cache_.file_of(key_));
    std::filesystem::copy_file(cache_.file_of(key_), cache_.file_of(key));  // as if the names had collided
    EXPECT_FALSE(cache_.read(key));
  }
}

TEST_F(CostCacheFiles, DamagedOnesAreIgnoredAndReplaced) {
  cache_.write(key_, example(), report_);
  const auto file = cache_.file_of(key_);
  const std::string good = read_text(file);
  const auto edited = [&](const std::function<void(nlohmann::json&)>& edit) {
    write_text(file, good);
    edit_json(file, edit);
    return cache_.read(key_);
  };
  for (const std::string& text :
      {std::string(), std::string("{"), std::string("[]"), std::string("7"), good.substr(0, 90)}) {
    write_text(file, text);
    EXPECT_FALSE(cache_.read(key_)) << text;
  }
  EXPECT_TRUE(edited([](nlohmann::json&) {}));
  EXPECT_FALSE(edited([](nlohmann::json& json) { json["format"] = 0; }));
  EXPECT_FALSE(edited([](nlohmann::json& json) { json["passes"] = nlohmann::json::array(); }));
  EXPECT_FALSE(edited([](nlohmann::json& json) { json["passes"][0]["ms"] = "fast"; }));
  EXPECT_FALSE(edited([](nlohmann::json& json) { json["passes"][0]["ms"] = -1; }));
  EXPECT_FALSE(edited([](nlohmann::json& json) { json["passes"][1]["rows"] = 1; }));
  EXPECT_FALSE(edited([](nlohmann::json& json) { json["draft"]["ms"] = 0; }));
  EXPECT_FALSE(edited([](nlohmann::json& json) { json.erase("context"); }));
  cache_.write(key_, example(), report_);
  expect_equal(cache_.read(key_), example());
}

TEST_F(CostCacheFiles, AFolderThatCannotBeWrittenIsAWarning) {
  write_text(dir_.path() / "a", "no folder");
  cache_.write(key_, example(), report_);
  ASSERT_EQ(report_.warnings().size(), 1u);
  EXPECT_NE(report_.warnings()[0].find("measured again"), std::string::npos);
  EXPECT_FALSE(cache_.read(key_));
}

}  // namespace
}  // namespace foresay
