// Mixtures of experts: the operation against its definition, every form that files store experts in, and head files
// that lack parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "base/error.h"
#include "decode/evaluate.h"
#include "fixtures/golden.h"
#include "fixtures/moe_checkpoint.h"
#include "fixtures/quantise_affine.h"
#include "fixtures/temp_dir.h"

namespace foresay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kExperts = 7, kHidden = 64, kWidth = 128;

std::vector<float> random_values(std::size_t count, unsigned seed, float scale) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

/// An expert's matrices as a lane gets them, and their values.
struct TestExperts {
  TestExperts(int out, int in, unsigned seed, int bits) {
    for (int e = 0; e < kExperts; ++e) {
      const auto raw = random_values(static_cast<std::size_t>(out * in), seed + static_cast<unsigned>(e), 0.2f);
      StoredMatrix one;
      one.module = "experts";
      one.out = out;
      one.in = in;
      if (bits == 0) {
        owned.push_back(OwnedTensor::of(DType::f32, {out, in}, raw));
        one.weight = owned.back().view();
        values.push_back(raw);
      } else {
        packed.push_back(quantise_affine(raw, out, in, bits, 64, DType::f32));
        one.quant = QuantGeometry{.mode = QuantMode::affine, .bits = bits, .group = 64};
        one.weight = packed.back().weight.view();
        one.scales = packed.back().scales.view();
        one.biases = packed.back().biases.view();
        values.push_back(dequantised(packed.back(), out, in, bits));
      }
      stored.push_back(one);
    }
  }

  static std::vector<float> dequantised(const PackedMatrix& matrix, int out, int in, int bits) {
    std::vector<float> all;
    const std::vector<float> scales = matrix.scales.to_float(), biases = matrix.biases.to_float();
    for (int n = 0; n < out; ++n) {
      for (int i = 0; i < in; ++i) {
        const auto group = static_cast<std::size_t>(n * in / 64 + i / 64);
        const auto word = static_cast<std::size_t>(n * in * bits / 8 + i * bits / 8);
        const int code = std::to_integer<int>(matrix.weight.bytes[word]) >> (i * bits % 8) & ((1 << bits) - 1);
        all.push_back(scales[group] * static_cast<float>(code) + biases[group]);
      }
    }
    return all;
  }

  std::vector<OwnedTensor> owned;
  std::vector<PackedMatrix> packed;
  std::vector<StoredMatrix> stored;
  std::vector<std::vector<float>> values;
};

struct MlpCase {
  std::string name;
  RouterSpec::Score score = RouterSpec::Score::softmax;
  int chosen = 3;
  bool bias = false, normalise = true;
  float factor = 1, limit = 0;
  int bits = 0;
};

/// Rows through the chosen experts, in double.
std::vector<double> by_definition(const MlpCase& c, const std::vector<float>& bias, const TestExperts& gate,
    const TestExperts& up, const TestExperts& down, const float* x, const float* logits, const float* residual) {
  std::vector<double> scores(kExperts);
  double total = 0;
  for (int e = 0; e < kExperts; ++e) total += std::exp(static_cast<double>(logits[e]));
  for (int e = 0; e < kExperts; ++e) {
    const auto at = static_cast<std::size_t>(e);
    scores[at] = c.score == RouterSpec::Score::softmax ? std::exp(static_cast<double>(logits[e])) / total
                                                       : 1 / (1 + std::exp(-static_cast<double>(logits[e])));
  }
  std::vector<int> order(kExperts);
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int e) {
    return scores[static_cast<std::size_t>(e)] +
           (c.bias ? static_cast<double>(bias[static_cast<std::size_t>(e)]) : 0.0);
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) > key(b) + 1e-9; });
  order.resize(static_cast<std::size_t>(c.chosen));
  double sum = 0;
  for (const int e : order) sum += scores[static_cast<std::size_t>(e)];
  std::vector<double> y(residual, residual + kHidden);
  for (const int e : order) {
    const auto at = static_cast<std::size_t>(e);
    const double weight = scores[at] / (c.normalise ? sum : 1) * static_cast<double>(c.factor);
    std::vector<double> inner(kWidth);
    for (int n = 0; n < kWidth; ++n) {
      double g = 0, u = 0;
      for (int i = 0; i < kHidden; ++i) {
        g +=
            static_cast<double>(gate.values[at][static_cast<std::size_t>(n * kHidden + i)]) * static_cast<double>(x[i]);
        u += static_cast<double>(up.values[at][static_cast<std::size_t>(n * kHidden + i)]) * static_cast<double>(x[i]);
      }
      g = g / (1 + std::exp(-g));
      if (c.limit > 0) {
        const auto limit = static_cast<double>(c.limit);
        g = std::min(g, limit);
        u = std::clamp(u, -limit, limit);
      }
      inner[static_cast<std::size_t>(n)] = g * u;
    }
    for (int d = 0; d < kHidden; ++d) {
      double out = 0;
      for (int n = 0; n < kWidth; ++n) {
        out += static_cast<double>(down.values[at][static_cast<std::size_t>(d * kWidth + n)]) *
               inner[static_cast<std::size_t>(n)];
      }
      y[static_cast<std::size_t>(d)] += weight * out;
    }
  }
  return y;
}

class RoutedMlp : public ::testing::TestWithParam<MlpCase> {};

TEST_P(RoutedMlp, IsItsDefinitionForAnyRowsAndThreads) {
  const MlpCase& c = GetParam();
  constexpr int kRows = 21;
  const TestExperts gate(kWidth, kHidden, 100, c.bits), up(kWidth, kHidden, 200, c.bits),
      down(kHidden, kWidth, 300, c.bits);
  const std::vector<float> x = random_values(kRows * kHidden, 1, 1), residual = random_values(kRows * kHidden, 2, 1),
                           bias = random_values(kExperts, 4, 0.3f);
  std::vector<float> logits = random_values(kRows * kExperts, 3, 1.5f);
  for (int e = 0; e < kExperts; ++e) logits[static_cast<std::size_t>(e)] = e % 2 == 0 ? 1.0f : -1.0f;  // row 0: ties
  std::vector<float> first;
  std::vector<std::unique_ptr<Ops>> lanes;
  for (const int threads : {1, 2, 3}) lanes.push_back(make_cpu_ops(threads));
  for (const auto& ops : lanes) {
    RouterSpec spec{.score = c.score, .chosen = c.chosen, .bias = {}, .normalise = c.normalise, .factor = c.factor};
    if (c.bias) spec.bias = ops->vector(bias);
    const ExpertMlps experts{.gate = ops->experts(gate.stored),
        .up = ops->experts(up.stored),
        .down = ops->experts(down.stored),
        .limit = c.limit};
    const auto run = [&](int from, int count) {
      const auto part = [&](const std::vector<float>& all, int width) {
        return ops->from_host(count, width,
            std::span(all).subspan(static_cast<std::size_t>(from * width), static_cast<std::size_t>(count * width)));
      };
      const Tensor y =
          ops->routed_mlp(spec, experts, part(x, kHidden), part(logits, kExperts), part(residual, kHidden));
      const auto values = ops->read(y);
      return std::vector<float>(values.begin(), values.end());
    };
    const std::vector<float> all = run(0, kRows);
    for (int r = 0; r < kRows; ++r) {
      const std::size_t at = static_cast<std::size_t>(r * kHidden);
      const auto want = by_definition(
          c, bias, gate, up, down, &x[at], &logits[static_cast<std::size_t>(r * kExperts)], &residual[at]);
      for (std::size_t d = 0; d < kHidden; ++d) EXPECT_NEAR(all[at + d], want[d], 2e-4) << ops->describe() << r;
    }
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << ops->describe();
    std::vector<float> pieces;
    for (const auto& [from, count] : {std::pair{0, 1}, {1, 4}, {5, 7}, {12, 9}}) {
      const auto some = run(from, count);
      pieces.insert(pieces.end(), some.begin(), some.end());
    }
    EXPECT_EQ(pieces, all) << ops->describe();
  }
}

class RoutedInt8 : public RoutedMlp {};

TEST_P(RoutedInt8, DoesNotDependOnWhoSharesThePassEither) {
  const MlpCase& c = GetParam();
  const TestExperts gate(kWidth, kHidden, 100, c.bits), up(kWidth, kHidden, 200, c.bits),
      down(kHidden, kWidth, 300, c.bits);
  constexpr int kRows = 13;
  const std::vector<float> x = random_values(kRows * kHidden, 1, 1), logits = random_values(kRows * kExperts, 3, 1.5f),
                           zeros(kRows * kHidden);
  const auto exact = make_cpu_ops(2), ops = make_cpu_ops(2, CpuActivations::int8);
  const auto run = [&](Ops& lane, int from, int count) {
    const ExpertMlps experts{.gate = lane.experts(gate.stored),
        .up = lane.experts(up.stored),
        .down = lane.experts(down.stored),
        .limit = c.limit};
    const auto part = [&](const std::vector<float>& all, int width) {
      return lane.from_host(count, width,
          std::span(all).subspan(static_cast<std::size_t>(from * width), static_cast<std::size_t>(count * width)));
    };
    const RouterSpec spec{
        .score = c.score, .chosen = c.chosen, .bias = {}, .normalise = c.normalise, .factor = c.factor};
    const Tensor y = lane.routed_mlp(spec, experts, part(x, kHidden), part(logits, kExperts), part(zeros, kHidden));
    const auto values = lane.read(y);
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<float> all = run(*ops, 0, kRows);
  EXPECT_LE(relative_rms(all, run(*exact, 0, kRows)), 0.02);
  EXPECT_NE(all, run(*exact, 0, kRows));
  std::vector<float> pieces;
  for (int r = 0; r < kRows; ++r) {
    const auto one = run(*ops, r, 1);
    pieces.insert(pieces.end(), one.begin(), one.end());
  }
  EXPECT_EQ(pieces, all);
}

INSTANTIATE_TEST_SUITE_P(, RoutedMlp,
    ::testing::Values(MlpCase{.name = "softmax"}, MlpCase{.name = "all", .chosen = kExperts},
        MlpCase{.name = "one", .chosen = 1, .normalise = false}, MlpCase{.name = "unnormalised", .normalise = false},
        MlpCase{.name = "sigmoid", .score = RouterSpec::Score::sigmoid, .bias = true, .factor = 2.5f},
        MlpCase{.name = "clamped", .score = RouterSpec::Score::sigmoid, .limit = 0.4f},
        MlpCase{.name = "bits4", .bits = 4}, MlpCase{.name = "bits8", .factor = 3, .bits = 8}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(, RoutedInt8,
    ::testing::Values(
        MlpCase{.name = "bits4", .bits = 4}, MlpCase{.name = "bits8", .chosen = 1, .limit = 2, .bits = 8}),
    [](const auto& test) { return test.param.name; });

TEST(RoutedMlpRows, ARowOfNaNIsNaNAndLeavesTheOthersAlone) {
  const TestExperts gate(kWidth, kHidden, 100, 0), up(kWidth, kHidden, 200, 0), down(kHidden, kWidth, 300, 0);
  const auto ops = make_cpu_ops(1);
  const ExpertMlps experts{
      .gate = ops->experts(gate.stored), .up = ops->experts(up.stored), .down = ops->experts(down.stored)};
  std::vector<float> x = random_values(2 * kHidden, 1, 1), logits = random_values(2 * kExperts, 3, 1);
  const std::vector<float> zeros(2 * kHidden);
  const auto run = [&] {
    const Tensor y = ops->routed_mlp({.chosen = 2, .bias = {}}, experts, ops->from_host(2, kHidden, x),
        ops->from_host(2, kExperts, logits), ops->from_host(2, kHidden, zeros));
    const auto values = ops->read(y);
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<float> before = run();
  std::fill_n(x.begin(), kHidden, NAN);
  std::fill_n(logits.begin(), kExperts, NAN);
  const std::vector<float> after = run();
  EXPECT_TRUE(std::all_of(after.begin(), after.begin() + kHidden, [](float v) { return std::isnan(v); }));
  EXPECT_TRUE(std::equal(after.begin() + kHidden, after.end(), before.begin() + kHidden));
}

/// Logits of trunk and head after 24 ids.
std::vector<float> all_logits(const fs::path& folder) {
  const OpenedModel model(folder);
  EXPECT_EQ(model->info().head_layers, 1) << model.loaded.mtp_reason;
  std::vector<TokenId> ids(24);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i * 37 % 512);
  const Evaluation e = evaluate(*model, ids, 2);
  std::vector<float> all = e.logits;
  for (const auto& step : e.mtp_logits) all.insert(all.end(), step.begin(), step.end());
  return all;
}

class ExpertForms : public ::testing::Test {
 protected:
  fs::path write(const std::string& family, const std::function<void(TensorMap&, Json&)>& edit) {
    return write_golden_variant(dir_.path() / std::to_string(++count_), family, edit);
  }
  void expect_refused(const std::function<void(TensorMap&)>& edit, const std::vector<std::string>& parts) {
    const auto folder = write("qwen3_5_moe", [&](TensorMap& tensors, Json&) { edit(tensors); });
    try {
      const OpenedModel model(folder);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      for (const std::string& part : parts) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      }
    }
  }

  TempDir dir_;
  int count_ = 0;
};

TEST_F(ExpertForms, GiveTheSameLogitsToTheBit) {
  const std::vector<float> want = all_logits(fs::path(FORESAY_TEST_DATA) / "random" / "qwen3_5_moe");
  for (const ExpertForm form : {ExpertForm::transposed, ExpertForm::numbered, ExpertForm::stacked}) {
    const auto folder = write("qwen3_5_moe", [&](TensorMap& tensors, Json&) { store_experts(tensors, form); });
    EXPECT_EQ(all_logits(folder), want) << static_cast<int>(form);
  }
  EXPECT_EQ(all_logits(write("qwen3_5_moe", [](TensorMap& tensors, Json&) { to_mlx_layout(tensors); })), want);
  EXPECT_EQ(all_logits(write("qwen3_5_moe",
                [](TensorMap& tensors, Json& config) {
                  to_mlx_layout(tensors);
                  config["model_type"] = "qwen3_5_mtp";
                })),
      want);
  EXPECT_EQ(all_logits(write("qwen3_5_moe",
                [](TensorMap& tensors, Json& config) {  // a text-only export
                  Json flat = config["text_config"];
                  flat["tie_word_embeddings"] = false;
                  config = flat;
                  TensorMap renamed;
                  for (auto& [name, tensor] : tensors) {
                    if (name.starts_with("model.visual.")) continue;
                    const bool trunk = name.starts_with("model.language_model.");
                    renamed.emplace(trunk ? "model." + name.substr(21) : name, std::move(tensor));
                  }
                  tensors = std::move(renamed);
                })),
      want);
}

TEST_F(ExpertForms, FusedProjectionsOfQwen3NextAreTheSplitOnes) {
  const std::vector<float> want = all_logits(fs::path(FORESAY_TEST_DATA) / "random" / "qwen3_next");
  const auto folder = write("qwen3_next", [](TensorMap& tensors, Json&) {
    constexpr int kKeyHeads = 2, kShare = 3, kKeyDim = 32, kValueDim = 32;
    TensorMap out;
    for (auto& [name, tensor] : tensors) {
      const bool qkvz = name.ends_with("in_proj_qkvz.weight"), ba = name.ends_with("in_proj_ba.weight");
      if (!qkvz && !ba) {
        out.emplace(name, std::move(tensor));
        continue;
      }
      const std::string layer = name.substr(0, name.find("in_proj_"));
      const auto gather = [&](const std::string& module, const std::vector<int>& rows) {
        OwnedTensor part = tensor;
        part.shape[0] = static_cast<std::int64_t>(rows.size());
        part.bytes.clear();
        for (const int row : rows) {
          const OwnedTensor one = OwnedTensor::copy_of(tensor.view().part(row, 1));
          part.bytes.insert(part.bytes.end(), one.bytes.begin(), one.bytes.end());
        }
        out.emplace(layer + module + ".weight", std::move(part));
      };
      std::vector<int> q, k, v, z, b, a;  // the row map of the specification
      const int block = 2 * kKeyDim + 2 * kShare * kValueDim;
      for (int g = 0; g < kKeyHeads; ++g) {
        for (int d = 0; d < kKeyDim; ++d) q.push_back(g * block + d);
        for (int d = 0; d < kKeyDim; ++d) k.push_back(g * block + kKeyDim + d);
        for (int i = 0; i < kShare; ++i) {
          for (int d = 0; d < kValueDim; ++d) v.push_back(g * block + 2 * kKeyDim + i * kValueDim + d);
          for (int d = 0; d < kValueDim; ++d) {
            z.push_back(g * block + 2 * kKeyDim + kShare * kValueDim + i * kValueDim + d);
          }
          b.push_back(g * 2 * kShare + i);
          a.push_back(g * 2 * kShare + kShare + i);
        }
      }
      if (ba) {
        gather("in_proj_b", b);
        gather("in_proj_a", a);
        continue;
      }
      q.insert(q.end(), k.begin(), k.end());
      q.insert(q.end(), v.begin(), v.end());
      gather("in_proj_qkv", q);
      gather("in_proj_z", z);
    }
    tensors = std::move(out);
  });
  EXPECT_EQ(all_logits(folder), want);
}

TEST_F(ExpertForms, QuantisedExpertsAndMixedModulesRun) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    const auto logits = [&](Packing packing) {
      return all_logits(write("qwen3_5_moe", [&](TensorMap& tensors, Json& config) {
        to_mlx_layout(tensors);
        quantise(tensors, config, bits, packing);
      }));
    };
    EXPECT_LE(max_abs(logits(Packing::packed), logits(Packing::values)), 2e-4) << bits;
  }
}

// B47: a head with its own width crashed the first request.
TEST_F(ExpertForms, TrunkAndHeadOfDifferentWidthsRunTogether) {
  const auto logits = [&](Packing packing) {
    return all_logits(write("qwen3_5_moe", [&](TensorMap& tensors, Json& config) {
      to_mlx_layout(tensors);
      TensorMap head;
      for (auto it = tensors.begin(); it != tensors.end();) {
        const bool is_head = it->first.find("mtp.") != std::string::npos;
        if (is_head) head.insert(*it);
        it = is_head ? tensors.erase(it) : std::next(it);
      }
      Json unnamed;
      quantise(tensors, config, 4, packing);
      quantise(head, unnamed, 8, packing);
      tensors.merge(head);
    }));
  };
  EXPECT_LE(max_abs(logits(Packing::packed), logits(Packing::values)), 2e-4);
}

TEST_F(ExpertForms, AFaultNamesTheTensor) {
  const std::string layer = "model.language_model.layers.2.mlp.";
  expect_refused(
      [&](TensorMap& t) { t.erase(layer + "experts.down_proj"); }, {"layers.2.mlp.experts.down_proj", "[8, 64, 32]"});
  expect_refused([&](TensorMap& t) { t.at(layer + "experts.gate_up_proj").shape = {8, 32, 128}; },
      {"layers.2.mlp.experts.gate_up_proj", "[8, 64, 64]", "[8, 32, 128]"});
  expect_refused(
      [&](TensorMap& t) {
        store_experts(t, ExpertForm::numbered);
        t.erase(layer + "experts.5.up_proj.weight");
      },
      {"layers.2.mlp.experts.5.up_proj.weight", "[32, 64]", "missing"});
  expect_refused([&](TensorMap& t) { t.erase(layer + "gate.weight"); }, {"layers.2.mlp.gate.weight", "[8, 64]"});
  expect_refused(
      [&](TensorMap& t) {
        store_experts(t, ExpertForm::numbered);
        auto& one = t.at(layer + "experts.5.up_proj.weight");
        one = OwnedTensor::of(DType::f32, one.shape, one.to_float());
      },
      {"experts.5.up_proj", "differently"});
}

class MoeRepairs : public ExpertForms {
 protected:
  /// Loads with these head tensors left out; the warnings, joined.
  std::string warnings(const std::vector<std::string>& lost, bool mlx = false) {
    const auto folder = write("qwen3_5_moe", [&](TensorMap& tensors, Json& config) {
      if (mlx) {
        to_mlx_layout(tensors);
        quantise(tensors, config, 8);
      }
      for (const std::string& name : lost) {
        std::erase_if(tensors, [&](const auto& t) { return t.first.find("mtp." + name) != std::string::npos; });
      }
    });
    logits_ = all_logits(folder);
    const OpenedModel model(folder);
    std::string all;
    for (const std::string& warning : model.report.warnings()) all += warning + "\n";
    return all;
  }

  std::vector<float> logits_;
};

TEST_F(MoeRepairs, WhatStandsInIsWhatTheSpecificationSaysAndIsLogged) {
  const auto same = [&](const std::function<void(TensorMap&)>& edit) {
    return all_logits(write("qwen3_5_moe", [&](TensorMap& tensors, Json&) { edit(tensors); }));
  };
  const auto fill = [](OwnedTensor& tensor, float value) {
    tensor = OwnedTensor::of(
        DType::f32, tensor.shape, std::vector<float>(static_cast<std::size_t>(tensor.view().elements()), value));
  };
  std::string said = warnings({"layers.0.self_attn.k_proj", "layers.0.self_attn.v_proj"});
  EXPECT_NE(said.find("k_proj"), std::string::npos) << said;
  EXPECT_NE(said.find("zeros"), std::string::npos) << said;
  EXPECT_EQ(logits_, same([&](TensorMap& t) {
    fill(t.at("mtp.layers.0.self_attn.k_proj.weight"), 0);
    fill(t.at("mtp.layers.0.self_attn.v_proj.weight"), 0);
  }));

  said = warnings({"layers.0.mlp.gate.", "layers.0.mlp.shared_expert_gate."});
  EXPECT_NE(said.find("layer 3"), std::string::npos) << said;
  EXPECT_EQ(logits_, same([&](TensorMap& t) {
    for (const std::string gate : {"gate", "shared_expert_gate"}) {
      t.at("mtp.layers.0.mlp." + gate + ".weight") = t.at("model.language_model.layers.3.mlp." + gate + ".weight");
    }
  }));

  said = warnings({"norm.weight", "layers.0.self_attn.q_norm"});
  EXPECT_NE(said.find("identity"), std::string::npos) << said;
  EXPECT_EQ(logits_, same([&](TensorMap& t) {
    fill(t.at("mtp.norm.weight"), 0);  // zero-centred
    fill(t.at("mtp.layers.0.self_attn.q_norm.weight"), 0);
  }));

  said = warnings({"layers.0.mlp.gate."}, /*mlx=*/true);  // packed gates are copied with their scales
  EXPECT_NE(said.find("layer 3"), std::string::npos) << said;
}

TEST_F(MoeRepairs, TheRestIsRefused) {
  for (const std::string name : {"fc.weight", "layers.0.self_attn.q_proj.weight", "layers.0.mlp.experts.down_proj",
           "layers.0.mlp.shared_expert.up_proj.weight"}) {
    expect_refused([&](TensorMap& t) { t.erase("mtp." + name); }, {name.substr(0, name.find(".weight")), "missing"});
  }
}

}  // namespace
}  // namespace foresay
