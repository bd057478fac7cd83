// A head that is wired wrongly: the same text, and just the numbers that a reference implementation got from each
// mistake.
#include <gtest/gtest.h>

#include <array>

#include "decode/draft/mtp_drafter.h"
#include "decode/golden_rounds.h"
#include "fixtures/owned_tensor.h"
#include "fixtures/temp_dir.h"

namespace foresay {
namespace {

struct Mistake {
  std::string model;
  std::string name;  ///< as in acceptance.json
  ContractOverrides contract;
  std::array<double, 3> moved;  ///< relative RMS change of mtp_logits.s, mean over the prompts of tiny-qwen3_5
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << mistake.model << " " << mistake.name;
}

std::vector<Mistake> mistakes() {
  std::vector<Mistake> all;
  for (const std::string& model : kTrainedGoldens) {
    Mistake swapped{model, "swapped_concat", {}, {3.8, 3.7, 3.7}};
    swapped.contract.concat_order = ConcatOrder::hidden_embedding;
    Mistake pre_norm{model, "pre_norm_hidden", {}, {0.15, 0.10, 0.09}};
    pre_norm.contract.base_hidden = HiddenState::pre_norm;
    Mistake chained{model, "chained_before_norm", {}, {0, 0.18, 0.22}};
    chained.contract.recycled_hidden = HeadState::pre_norm;
    all.insert(all.end(), {swapped, pre_norm, chained});
  }
  // Only a head that is stored zero-centred can be left unshifted.
  Mistake unshifted{"tiny-qwen3_5", "head_norms_not_shifted", {}, {1.4, 0.9, 1.2}};
  unshifted.contract.head_norms = NormEncoding::absolute;
  all.push_back(unshifted);
  return all;
}

/// Relative RMS of each step's logits against the goldens, mean over their six prompts.
std::array<double, 3> moved_logits(const Model& model, const std::string& name) {
  std::array<double, 3> mean{};
  const auto prompts = golden_names({name});
  for (const std::string& prompt : prompts) {
    const GoldenPrompt golden = read_golden(prompt);
    const auto ids = golden.continued(3);
    std::vector<std::vector<TokenId>> tokens;
    for (const int t : golden.positions) tokens.emplace_back(ids.begin() + t + 1, ids.begin() + t + 4);
    const HeadRows rows = run_head(model, ids, golden.positions, tokens);
    for (std::size_t step = 0; step < mean.size(); ++step) {
      mean[step] += relative_rms(rows.logits[step], golden.tensors.at("mtp_logits." + std::to_string(step + 1))) /
                    static_cast<double>(prompts.size());
    }
  }
  return mean;
}

constexpr double kUnmoved = 1e-4;

/// Multiplies by a power of two, which is exact.
void scale(OwnedTensor& tensor, float factor) {
  const std::vector<float> values = tensor.to_float();
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set(i, values[i] * factor);
}

/// The loader refuses norms whose gain is near zero on average, as two of this head are when they stay unshifted. Here
/// those are doubled and the matrices behind them halved: read unshifted, it is the same head to the bit, and loads.
std::filesystem::path copy_that_loads_unshifted(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
  edit_tensors(to / "model.safetensors", [](TensorMap& tensors) {
    const std::string layer = "mtp.layers.0.";
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
      scale(tensors.at(layer + norm + ".weight"), 2.0f);
    for (const char* matrix :
        {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"})
      scale(tensors.at(layer + matrix + ".weight"), 0.5f);
  });
  return to;
}

class WrongWiring : public ::testing::TestWithParam<Mistake> {
 private:
  const TempDir dir_;

 protected:
  [[nodiscard]] std::filesystem::path folder() const {
    const auto bundled = bundled_model(GetParam().model);
    return GetParam().contract.head_norms ? copy_that_loads_unshifted(bundled, dir_.path() / "copy") : bundled;
  }

  const OpenedModel model_{folder(), {.mtp = MtpMode::on, .contract = GetParam().contract}};
};

TEST_P(WrongWiring, MovesTheHeadsLogitsAsTheReferences) {
  const auto moved = moved_logits(*model_, GetParam().model);
  for (std::size_t step = 0; step < moved.size(); ++step) {
    const double expected = GetParam().moved[step];
    RecordProperty("moved_" + std::to_string(step + 1), std::to_string(moved[step]));
    if (expected == 0) {
      EXPECT_LT(moved[step], kUnmoved) << "step " << step + 1;
    } else {
      EXPECT_GT(moved[step], expected / 2) << "step " << step + 1;
      EXPECT_LT(moved[step], expected * 2) << "step " << step + 1;
    }
  }
}

TEST_P(WrongWiring, CostsAcceptanceAndNeverAToken) {
  constexpr int kDepth = 3;
  MtpDrafter drafter(*model_);
  DecodeOptions options;
  options.depth = kDepth;
  options.max_tokens = kAcceptanceTokens;
  const auto prompts = acceptance_prompts();
  const auto drafted = decode_together(*model_, &drafter, prompts, options);
  const auto plain = decode_together(*model_, nullptr, prompts, options);
  for (std::size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(drafted[i].ids, plain[i].ids) << "prompt " << i;

  const auto golden = read_golden_json(GetParam().model + "/acceptance.json").at("wrong_wiring").at(GetParam().name);
  expect_acceptance(measure(drafted, kDepth), golden_rates(golden.at("greedy").at("depth_3")), Sample::same);
}

INSTANTIATE_TEST_SUITE_P(, WrongWiring, ::testing::ValuesIn(mistakes()),
    [](const auto& test) { return test_name(test.param.model + "_" + test.param.name); });

class RightWiring : public ::testing::TestWithParam<std::string> {};

TEST_P(RightWiring, LeavesTheHeadsLogitsWhereTheReferencesAre) {
  const OpenedModel model(bundled_model(GetParam()));
  for (const double moved : moved_logits(*model, GetParam())) EXPECT_LT(moved, kUnmoved);
}

INSTANTIATE_TEST_SUITE_P(
    , RightWiring, ::testing::ValuesIn(kTrainedGoldens), [](const auto& test) { return test_name(test.param); });

}  // namespace
}  // namespace foresay
