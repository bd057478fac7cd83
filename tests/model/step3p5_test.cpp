// The step3p5 family beyond its goldens: every tool's names give the same logits, and faults are named.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "decode/evaluate.h"
#include "fixtures/golden.h"
#include "fixtures/moe_checkpoint.h"
#include "fixtures/step_checkpoint.h"
#include "fixtures/temp_dir.h"

namespace foresay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Logits of trunk and head after 30 ids: past the window of 8.
std::vector<float> all_logits(const OpenedModel& model, int depth = 3) {
  std::vector<TokenId> ids(30);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i * 37 % 512);
  const Evaluation e = evaluate(*model, ids, depth);
  std::vector<float> all = e.logits;
  for (const auto& step : e.mtp_logits) all.insert(all.end(), step.begin(), step.end());
  return all;
}

OwnedTensor expert(const OwnedTensor& stacked, std::int64_t e) {
  OwnedTensor one = OwnedTensor::copy_of(stacked.view().part(e, 1));
  one.shape.erase(one.shape.begin());
  return one;
}

class Step35Variants : public ::testing::Test {
 protected:
  fs::path write(const std::function<void(TensorMap&, Json&)>& edit) {
    return write_golden_variant(dir_.path() / std::to_string(++count_), "step3p5", edit);
  }
  void expect_same(const std::function<void(TensorMap&, Json&)>& edit, const std::string& what) {
    EXPECT_EQ(all_logits(OpenedModel(write(edit))), want_) << what;
  }
  void expect_refused(const std::function<void(TensorMap&, Json&)>& edit, const std::vector<std::string>& parts,
      const LoadOptions& options = {}) {
    try {
      const OpenedModel model(write(edit), options);
      ADD_FAILURE() << "no error that names " << parts.front();
    } catch (const Error& error) {
      for (const std::string& part : parts) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << " in: " << error.what();
      }
    }
  }

  TempDir dir_;
  int count_ = 0;
  const std::vector<float> want_ = all_logits(OpenedModel(fs::path(FORESAY_TEST_DATA) / "random" / "step3p5"));
};

TEST_F(Step35Variants, EveryToolsNamesGiveTheSameLogitsToTheBit) {
  for (const std::string prefix : {"language_model.", "model."}) {
    expect_same(
        [&](TensorMap& t, Json&) { rename(t, [&](const std::string& name) { return prefix + name; }); }, prefix);
  }
  expect_same([](TensorMap& t, Json&) { step_to_mlx_layout(t); }, "MLX");
  for (const std::string numbered : {".moe.", ".moe.experts."}) {
    expect_same(
        [&](TensorMap& t, Json&) {
          TensorMap out;
          for (auto& [name, tensor] : t) {
            const auto at = name.find(".moe.");
            if (at == std::string::npos || tensor.shape.size() != 3) {
              out.emplace(name, std::move(tensor));
              continue;
            }
            for (std::int64_t e = 0; e < tensor.shape[0]; ++e) {
              out.emplace(
                  name.substr(0, at) + numbered + std::to_string(e) + "." + name.substr(at + 5), expert(tensor, e));
            }
          }
          t = std::move(out);
        },
        numbered);
  }
  expect_same(
      [](TensorMap& t, Json&) {  // as Transformers saves it
        TensorMap out;
        for (auto& [name, tensor] : t) {
          std::string renamed = replaced(name, ".share_expert.", ".mlp.shared_experts.");
          renamed = replaced(renamed, ".moe.gate.", ".mlp.gate.");
          renamed = replaced(renamed, ".moe.router_bias", ".mlp.gate.e_score_correction_bias");
          renamed = replaced(renamed, ".moe.down_proj.weight", ".mlp.experts.down_proj");
          if (name.find(".moe.up_proj.") != std::string::npos) continue;
          if (name.find(".moe.gate_proj.") == std::string::npos) {
            out.emplace(renamed, tensor);
            continue;
          }
          const OwnedTensor& up = t.at(replaced(name, "gate_proj", "up_proj"));
          OwnedTensor both = tensor;
          both.shape[1] *= 2;
          both.bytes.clear();
          for (std::int64_t e = 0; e < tensor.shape[0]; ++e) {
            for (const OwnedTensor& part : {expert(tensor, e), expert(up, e)}) {
              both.bytes.insert(both.bytes.end(), part.bytes.begin(), part.bytes.end());
            }
          }
          out.emplace(replaced(renamed, ".moe.gate_proj.weight", ".mlp.experts.gate_up_proj"), std::move(both));
        }
        t = std::move(out);
      },
      "Transformers");
  expect_same(
      [](TensorMap& t, Json&) {  // under names of its own, from 0 on
        rename(t, [](std::string name) {
          for (int i = 0; i < 3; ++i) {
            const std::string layer = "model.layers." + std::to_string(5 + i) + ".";
            if (!name.starts_with(layer)) continue;
            name = "mtp.layers." + std::to_string(i) + "." + replaced(name.substr(layer.size()), "transformer.", "");
          }
          return name;
        });
      },
      "mtp.layers.0");
}

TEST_F(Step35Variants, AHeadInAFileOfItsOwnMayCountEitherWay) {
  for (const std::string prefix : {"layers.", "model.layers."}) {
    for (const int first : {0, 5}) {
      TensorMap head;
      const auto folder = write([&](TensorMap& t, Json&) {
        for (auto it = t.begin(); it != t.end();) {
          if (!is_step_head(it->first)) {
            ++it;
            continue;
          }
          std::string rest = it->first.substr(it->first.find("layers.") + 7);
          const int depth = rest[0] - '5';
          head.emplace(prefix + std::to_string(depth + first) + rest.substr(1), std::move(it->second));
          it = t.erase(it);
        }
      });
      write_tensors(folder / "mtp.safetensors", head);
      const OpenedModel model(folder);
      EXPECT_EQ(all_logits(model), want_) << prefix << first;
      EXPECT_EQ(model.loaded.head.found_in, "mtp.safetensors");
    }
  }
}

TEST_F(Step35Variants, ListsThatEndAtTheTrunkGiveTheHeadsTheFirstSlidingLayersAttributes) {
  expect_same(
      [](TensorMap&, Json& config) {
        for (const char* key :
            {"layer_types", "rope_theta", "partial_rotary_factors", "swiglu_limits", "swiglu_limits_shared"}) {
          if (config.contains(key) && config[key].is_array())
            config[key].erase(config[key].begin() + 5, config[key].end());
        }
      },
      "short lists");
  expect_same(
      [](TensorMap& t, Json& config) {  // the text half of a wrapper with a vision tower
        config = {{"model_type", "step3p7"}, {"text_config", config}};
        t.emplace("vision_model.patch.weight", OwnedTensor::of(DType::f32, {2}, std::vector<float>{1, 2}));
        t.emplace("vit_downsampler1.weight", OwnedTensor::of(DType::f32, {1}, std::vector<float>{1}));
      },
      "step3p7");
}

TEST_F(Step35Variants, AMissingLastDepthIsAWarningAndAPartOfOneAFault) {
  const OpenedModel model(write([](TensorMap& t, Json&) {
    std::erase_if(t, [](const auto& entry) { return entry.first.find("layers.7.") != std::string::npos; });
  }));
  EXPECT_EQ(model->info().max_depth, 2);
  EXPECT_TRUE(std::ranges::any_of(model.report.warnings(), [](const std::string& text) {
    return text.find("declares 3 MTP layers, the files hold 2") != std::string::npos;
  }));
  const std::vector<float> logits = all_logits(model, 2);
  EXPECT_TRUE(std::equal(logits.begin(), logits.end(), want_.begin()));

  expect_refused([](TensorMap& t, Json&) { t.erase("model.layers.6.eh_proj.weight"); },
      {"layers.1.eh_proj.weight", "[64, 128]", "missing"});
  expect_refused([](TensorMap& t, Json&) { t.at("model.layers.7.enorm.weight").shape = {8, 8}; },
      {"model.layers.7.enorm.weight", "[64]", "[8, 8]"});
  expect_refused(
      [](TensorMap& t, Json&) {
        t.emplace("model.layers.5.extra.weight", OwnedTensor::of(DType::f32, {1}, std::vector<float>{1}));
      },
      {"model.layers.5.extra.weight"});
  const OpenedModel plain(write([](TensorMap& t, Json&) { t.erase("model.layers.6.eh_proj.weight"); }),
      {.mtp = MtpMode::automatic, .contract = {}});
  EXPECT_EQ(plain->info().head_layers, 0);
}

TEST_F(Step35Variants, FaultsOfTheConfigAreNamed) {
  const auto refused = [&](const char* key, const Json& value, const std::vector<std::string>& parts) {
    expect_refused(
        [&](TensorMap&, Json& config) {
          if (value.is_null()) {
            config.erase(key);
          } else {
            config[key] = value;
          }
        },
        parts);
  };
  refused("layer_types", nullptr, {"layer_types is missing"});
  refused("layer_types", Json::array({"full_attention"}), {"layer_types has 1 entries", "5"});
  refused("layer_types", Json(std::vector<std::string>(8, "ring_attention")), {"ring_attention", "sliding_attention"});
  refused("moe_router_scaling_factor", nullptr, {"moe_router_scaling_factor"});
  refused("moe_layers_enum", "2,3", {"moe_layers_enum", "layer 4"});
  refused("moe_layers_enum", "2,x", {"moe_layers_enum", "\"2,x\""});
  refused("moe_top_k", 9, {"moe_top_k", "8 experts"});
  refused("moe_router_activation", "softmax", {"moe_router_activation", "sigmoid"});
  refused("sink", true, {"sink"});
  refused("use_qk_norm", false, {"use_qk_norm"});
  refused("use_rope_layers", Json::array({1}), {"use_rope_layers"});
  refused("rope_theta", Json::array({"x"}), {"rope_theta", "list of numbers"});
  refused("rope_scaling", {{"rope_type", "yarn"}}, {"rope_type \"yarn\"", "llama3"});
  const OpenedModel plain(write([](TensorMap&, Json& config) { config["num_nextn_predict_layers"] = 0; }));
  EXPECT_EQ(plain->info().head_layers, 0) << "nothing is declared: the extra layers are of nobody";
  expect_refused([](TensorMap& t, Json&) { t.erase("model.layers.2.moe.router_bias"); }, {"router_bias"});
  LoadOptions swapped;
  swapped.contract.concat_order = ConcatOrder::hidden_embedding;
  expect_refused([](TensorMap&, Json&) {}, {"concat_order", "embedding, then the hidden state"}, swapped);
}

TEST_F(Step35Variants, NormsOfAHeadFollowAStatementOrEachItsOwnMean) {
  const auto gains = [](TensorMap& t, const std::string& part) {
    for (auto& [name, tensor] : t) {
      if (!is_step_head(name) || tensor.shape.size() != 1 || name.find(part) == std::string::npos) continue;
      std::vector<float> gain = tensor.to_float();
      for (float& g : gain) g += 1.0f;
      tensor = OwnedTensor::of(DType::f32, tensor.shape, gain);
    }
  };
  expect_same([&](TensorMap& t, Json&) { gains(t, "norm"); }, "all of them gains");
  const auto folder = write([&](TensorMap& t, Json&) { gains(t, "q_norm"); });
  const OpenedModel mixed(folder);
  EXPECT_EQ(all_logits(mixed), want_);
  EXPECT_TRUE(std::ranges::any_of(mixed.report.warnings(), [](const std::string& text) {
    return text.find("some norms look stored minus 1 and some not") != std::string::npos;
  }));
  expect_same(
      [&](TensorMap& t, Json& config) {
        gains(t, "norm");
        config["mtplx_mtp_norm_encoding"] = "mlx_gamma";
      },
      "stated gains");
  EXPECT_NE(
      all_logits(OpenedModel(write([&](TensorMap&, Json& config) { config["mtp_norm_encoding"] = "gamma"; }))), want_)
      << "a statement beats the means";
  expect_refused(
      [](TensorMap&, Json& config) { config["mtp_norm_encoding"] = "odd"; }, {"mtp_norm_encoding", "\"odd\""});
}

}  // namespace
}  // namespace foresay
