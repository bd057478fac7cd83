// The wiring of a head: values and their names, who may state them and who wins, and what the recycled states are.
#include "model/contract.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/error.h"
#include "fixtures/tiny_checkpoint.h"
#include "model/contract_sources.h"
#include "model/load.h"

namespace foresay {
namespace {

TEST(ContractValues, EveryNameIsReadBack) {
  for (const HiddenState v : {HiddenState::pre_norm, HiddenState::post_norm})
    EXPECT_EQ(contract_value<HiddenState>(name_of(v)), v);
  for (const HeadState v :
      {HeadState::pre_norm, HeadState::post_norm, HeadState::fc, HeadState::embedding, HeadState::prev})
    EXPECT_EQ(contract_value<RecycledHidden>(name_of(v)), RecycledHidden(v));
  for (const ConcatOrder v : {ConcatOrder::embedding_hidden, ConcatOrder::hidden_embedding})
    EXPECT_EQ(contract_value<ConcatOrder>(name_of(v)), v);
  for (const PositionMode v : {PositionMode::cache, PositionMode::local, PositionMode::absolute})
    EXPECT_EQ(contract_value<PositionMode>(name_of(v)), v);
  for (const NormEncoding v : {NormEncoding::zero_centred, NormEncoding::absolute})
    EXPECT_EQ(contract_value<NormEncoding>(name_of(v)), v);
  EXPECT_EQ(contract_value<NormEncoding>("mlx_delta"), NormEncoding::zero_centred);
  EXPECT_EQ(contract_value<NormEncoding>("mlx_gamma"), NormEncoding::absolute);
}

TEST(ContractValues, AMixHasTwoStatesAndAShareFromZeroToOne) {
  const RecycledHidden mix(HeadState::pre_norm, HeadState::post_norm, 0.75f);
  EXPECT_EQ(contract_value<RecycledHidden>("mix:pre_norm:post_norm:0p75"), mix);
  EXPECT_EQ(contract_value<RecycledHidden>("mix:pre_norm:post_norm:0.75"), mix);
  EXPECT_EQ(name_of(mix), "mix:pre_norm:post_norm:0.75");
  EXPECT_EQ(contract_value<RecycledHidden>(name_of(mix)), mix);
  EXPECT_EQ(contract_value<RecycledHidden>("mix:fc:prev:1"), RecycledHidden(HeadState::fc, HeadState::prev, 1.0f));
  EXPECT_EQ(contract_value<RecycledHidden>("mix:fc:prev:0"), RecycledHidden(HeadState::fc, HeadState::prev, 0.0f));
  for (const char* bad :
      {"", "mix", "mix:pre_norm:post_norm", "mix:pre_norm:post_norm:", "mix:pre_norm:post_norm:1.5",
          "mix:pre_norm:post_norm:-0.1", "mix:pre_norm:post_norm:nan", "mix:pre_norm:post_norm:0.5:1",
          "mix:pre_norm:mix:0.5", "mix:final:post_norm:0.5", "blend:pre_norm:post_norm:0.5", "Post_norm", "post_norm "})
    EXPECT_FALSE(contract_value<RecycledHidden>(bad)) << bad;
  EXPECT_FALSE(contract_value<HiddenState>("fc"));  // of the head, not of the trunk
}

/// A tiny checkpoint and files that speak about its head.
class ContractSources : public ::testing::Test {
 protected:
  void SetUp() override { write_tiny(folder_, tiny()); }

  void write(const char* file, const std::string& text) { std::ofstream(folder_ / file) << text; }
  void write_config(const char* key, const nlohmann::json& value) {
    edit_json(folder_ / "config.json", [&](auto& config) { config[key] = value; });
  }
  Contract contract(const ContractOverrides& overrides = {}) {
    report_ = Report();
    const Checkpoint checkpoint = Checkpoint::open(folder_, report_);
    return load_model(checkpoint, *ops_, {.mtp = MtpMode::on, .contract = overrides}, report_).model->contract();
  }
  void expect_refused(const std::vector<std::string>& parts) {
    try {
      (void)contract();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::checkpoint) << error.what();
      for (const auto& part : parts) EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }

  TempDir dir_;
  std::filesystem::path folder_ = dir_.path() / "model";
  Report report_;
  std::unique_ptr<Ops> ops_ = make_cpu_ops(1);
};

TEST_F(ContractSources, TheStrongestSourceWinsAlsoWithTheDefault) {
  EXPECT_EQ(contract().recycled_hidden.source, "family default");
  EXPECT_EQ(contract().base_hidden.source, "family default");

  write_config("mtp_hidden_state_mode", "pre_norm");
  EXPECT_EQ(contract().base_hidden.value, HiddenState::pre_norm);
  EXPECT_EQ(contract().base_hidden.source, "config.json: mtp_hidden_state_mode");

  write_config("mtplx_mtp_contract", {{"base_hidden_variant", "post_norm"}, {"hidden_variant", "prev"},
                                         {"concat_order", "hidden_embedding"}, {"mtp_position_mode", "absolute"}});
  Contract c = contract();
  EXPECT_EQ(c.base_hidden.value, HiddenState::post_norm);
  EXPECT_EQ(c.base_hidden.source, "config.json: mtplx_mtp_contract: base_hidden_variant");
  EXPECT_EQ(c.recycled_hidden.value, RecycledHidden(HeadState::prev));
  EXPECT_EQ(c.concat_order.value, ConcatOrder::hidden_embedding);
  EXPECT_EQ(c.position_mode.value, PositionMode::absolute);

  write("mtplx_runtime.json", R"({"mtp_contract": {"mtp_hidden_variant": "fc", "concat_order": "embedding_hidden"}})");
  c = contract();
  EXPECT_EQ(c.recycled_hidden.value, RecycledHidden(HeadState::fc));
  EXPECT_EQ(c.recycled_hidden.source, "mtplx_runtime.json: mtp_contract: mtp_hidden_variant");
  EXPECT_EQ(c.concat_order.value, ConcatOrder::embedding_hidden);
  EXPECT_EQ(c.position_mode.value, PositionMode::absolute);  // stated further down alone

  write("mtplx_runtime.json", R"({"hidden_variant": "embedding", "position_mode": "local", "concat_order": "auto"})");
  c = contract();
  EXPECT_EQ(c.recycled_hidden.source, "mtplx_runtime.json: hidden_variant");
  EXPECT_EQ(c.position_mode.value, PositionMode::local);
  EXPECT_EQ(c.concat_order.source, "config.json: mtplx_mtp_contract: concat_order");  // auto states nothing

  write("foresay.json", R"({"foresay": 1, "contract": {"recycled_hidden": "post_norm"}})");
  c = contract();
  EXPECT_EQ(c.recycled_hidden.value, RecycledHidden(HeadState::post_norm));
  EXPECT_EQ(c.recycled_hidden.source, "foresay.json: contract: recycled_hidden");

  ContractOverrides overrides;
  overrides.recycled_hidden = HeadState::pre_norm;
  overrides.base_hidden = HiddenState::post_norm;
  c = contract(overrides);
  EXPECT_EQ(c.recycled_hidden.value, RecycledHidden(HeadState::pre_norm));
  EXPECT_EQ(c.recycled_hidden.source, "asked for");
  EXPECT_EQ(c.base_hidden.source, "asked for");
}

TEST_F(ContractSources, ABadValueNamesFileKeyChoicesAndWhatWasFound) {
  write_config("mtplx_mtp_contract", {{"concat_order", "hidden_first"}});
  expect_refused(
      {"config.json: mtplx_mtp_contract: concat_order", "embedding_hidden or hidden_embedding", "\"hidden_first\""});
  write_config("mtplx_mtp_contract", {{"mtp_quant_bits", 0}});
  expect_refused({"mtp_quant_bits", "from 1 to 8", "0"});
  write_config("mtplx_mtp_contract", {{"mtp_quant_policy", "some"}});
  expect_refused({"mtp_quant_policy", "all, cyankiwi or prequantized-int4", "\"some\""});
  write_config("mtplx_mtp_contract", {{"hidden_variant", 3}});
  expect_refused({"hidden_variant", "a string", "3"});
  write_config("mtplx_mtp_contract", nullptr);

  write("mtplx_runtime.json", R"({"mtp_contract": {"hidden_variant": "mix:pre_norm:post_norm:2"}})");
  expect_refused({"mtplx_runtime.json: mtp_contract: hidden_variant", "mix:<one>:<other>", "mix:pre_norm:post_norm:2"});
  write(
      "mtplx_runtime.json", R"({"base_hidden_variant": "mix:pre_norm:post_norm:0.5"})");  // never post_norm in silence
  expect_refused({"mtplx_runtime.json: base_hidden_variant", "pre_norm or post_norm"});
  std::filesystem::remove(folder_ / "mtplx_runtime.json");

  write("foresay.json", R"({"foresay": 1, "contract": {"concat": "hidden_embedding"}})");
  expect_refused({"foresay.json: contract: concat", "concat_order"});
  write("foresay.json", R"({"foresay": 2, "contract": {}})");
  expect_refused({"foresay.json: expected version 1, found 2"});
  write("foresay.json", "{");
  expect_refused({"foresay.json"});

  // A weaker source is checked too, and a head that is switched off asks nobody.
  write("foresay.json", R"({"foresay": 1, "contract": {"concat_order": "embedding_hidden"}})");
  write_config("mtplx_mtp_contract", {{"concat_order", "hidden_first"}});
  expect_refused({"hidden_first"});
  const Checkpoint checkpoint = Checkpoint::open(folder_, report_);
  EXPECT_EQ(load_model(checkpoint, *ops_, {.mtp = MtpMode::off, .contract = {}}, report_).mtp_reason, "switched off");
  const auto plain = load_model(checkpoint, *ops_, {.mtp = MtpMode::automatic, .contract = {}}, report_);
  EXPECT_EQ(plain.model->info().head_layers, 0);
  EXPECT_NE(plain.mtp_reason.find("hidden_first"), std::string::npos);
}

TEST_F(ContractSources, BitsThatMtplxFilesAskForAreAPacking) {
  EXPECT_EQ(contract().head_packing.value, HeadPacking{});
  write_config("mtplx_mtp_contract", {{"mtp_quant_bits", 4}, {"mtp_quant_policy", "cyankiwi"}});
  EXPECT_EQ(name_of(contract().head_packing.value), "affine:4:64");
  EXPECT_EQ(contract().head_packing.source, "config.json: mtplx_mtp_contract: mtp_quant_bits");
  write_config(
      "mtplx_mtp_contract", {{"mtp_quant_bits", 8}, {"mtp_quant_group_size", 32}, {"mtp_quant_policy", "all"}});
  EXPECT_EQ(name_of(contract().head_packing.value), "affine:8:32:all");
  write_config("mtplx_mtp_contract", {{"mtp_quant_bits", 8}, {"mtp_prequantized", true}});  // describes what is stored
  EXPECT_EQ(contract().head_packing.source, "family default");
  write("foresay.json", R"({"foresay": 1, "contract": {"head_packing": "bf16"}})");
  EXPECT_EQ(contract().head_packing.source, "foresay.json: contract: head_packing");
  std::filesystem::remove(folder_ / "foresay.json");
  write_config("mtplx_mtp_contract", {{"mtp_quant_bits", 7}});
  expect_refused({"mtp_quant_bits", "2, 3, 4, 5, 6 or 8", "7 in groups of 64"});
}

TEST_F(ContractSources, StatedNormsThatTheValuesContradictAreAnError) {
  write("foresay.json", R"({"foresay": 1, "contract": {"head_norms": "absolute"}})");  // stored zero-centred
  expect_refused({"foresay.json: contract: head_norms says the norms are absolute", "zero_centred"});
}

TEST_F(ContractSources, WhatIsWrittenIsReadBack) {
  ContractOverrides overrides;
  overrides.recycled_hidden = RecycledHidden(HeadState::fc, HeadState::prev, 0.25f);
  overrides.concat_order = ConcatOrder::hidden_embedding;
  overrides.position_mode = PositionMode::local;
  const Contract first = contract(overrides);
  write("foresay.json", R"({"foresay": 1, "mine": [1, 2]})");
  write_contract(folder_, first);
  const Contract again = contract();
  EXPECT_EQ(again.base_hidden.value, first.base_hidden.value);
  EXPECT_EQ(again.recycled_hidden.value, first.recycled_hidden.value);
  EXPECT_EQ(again.concat_order.value, first.concat_order.value);
  EXPECT_EQ(again.position_mode.value, first.position_mode.value);
  EXPECT_EQ(again.head_norms.value, first.head_norms.value);
  EXPECT_EQ(again.recycled_hidden.source, "foresay.json: contract: recycled_hidden");
  EXPECT_EQ(Config::read(folder_ / "foresay.json").json().at("mine").size(), 2u);
}

// ---- what the states are

class RecycledStates : public ContractSources {
 protected:
  struct Drafted {
    std::vector<float> recycled;
    std::map<std::string, std::vector<float>> seen;
    std::vector<float> hidden;  ///< of the rows that draft, as the trunk handed them over
  };

  /// Two rows through the head, of which the second drafts.
  Drafted draft(const RecycledHidden& recycled) {
    ContractOverrides overrides;
    overrides.recycled_hidden = recycled;
    const Checkpoint checkpoint = Checkpoint::open(folder_, report_);
    const auto loaded = load_model(checkpoint, *ops_, {.mtp = MtpMode::on, .contract = overrides}, report_);
    const Model& model = *loaded.model;
    const auto caches = model.make_caches();
    const HeadCaches head_caches = model.make_head_caches();
    const Forward forward =
        model.forward({.tokens = {5, 6}, .slices = {{0, 2, caches.get(), false}}, .logit_rows = {}});
    Drafted out;
    const auto keep = [&](const Tensor& x) {
      const auto values = ops_->read(x);
      return std::vector<float>(values.end() - x.width, values.end());  // its last row
    };
    Tap tap([&](const std::string& name, const Tensor& x) { out.seen[name] = keep(x); });
    ops_->set_tap(&tap);
    HeadPass pass;
    pass.hidden = model.head_input(forward);
    pass.tokens = {6, 7};
    pass.slices = {{0, 2, head_caches.front().get(), false}};
    pass.output_rows = {1};
    pass.logit_rows = {0};
    const HeadForward drafted = model.draft(pass);
    ops_->set_tap(nullptr);
    EXPECT_EQ(drafted.recycled.rows, 1);
    out.recycled = keep(drafted.recycled);
    out.hidden = keep(pass.hidden);
    const auto other = model.make_caches();
    Tap trunk([&](const std::string& name, const Tensor& x) { out.seen["trunk." + name] = keep(x); });
    ops_->set_tap(&trunk);
    (void)model.forward({.tokens = {7}, .slices = {{0, 1, other.get(), false}}, .logit_rows = {}});
    ops_->set_tap(nullptr);
    return out;
  }
};

TEST_F(RecycledStates, AreWhatTheirNamesSay) {
  const Drafted post = draft(HeadState::post_norm);
  EXPECT_EQ(post.recycled, post.seen.at("mtp.1.final_norm"));
  const Drafted fc = draft(HeadState::fc);
  EXPECT_EQ(fc.recycled, fc.seen.at("mtp.1.fused"));
  const Drafted prev = draft(HeadState::prev);
  EXPECT_EQ(prev.recycled, prev.hidden);
  const Drafted embedding = draft(HeadState::embedding);
  EXPECT_EQ(embedding.recycled, embedding.seen.at("trunk.embed"));

  const Drafted pre = draft(HeadState::pre_norm);
  EXPECT_NE(pre.recycled, post.recycled);
  const Drafted mix = draft(RecycledHidden(HeadState::pre_norm, HeadState::fc, 0.75f));
  for (std::size_t i = 0; i < mix.recycled.size(); ++i) {
    EXPECT_FLOAT_EQ(mix.recycled[i], 0.75f * pre.recycled[i] + 0.25f * fc.recycled[i]);
  }
}

}  // namespace
}  // namespace foresay
