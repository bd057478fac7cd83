// Single operations of the MLX lane: every storage format, and rows that are few, none or out of order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/quantisation.h"
#include "checkpoint/safetensors.h"
#include "fixtures/golden.h"
#include "model/cache_layers.h"
#include "model/ops_mlx/kv_cache_mlx.h"

namespace foresay {
namespace {

class MlxOperation : public ::testing::Test {
 protected:
  std::vector<float> read(const Tensor& x) {
    const auto values = ops_->read(x);
    return {values.begin(), values.end()};
  }

  static constexpr float kValues[] = {1.5f, -2.0f, 0.25f, 3.0f, 0.5f, -1.0f};  // [2, 3], exact in every type
  static StoredMatrix stored(DType type, const void* data) {
    StoredMatrix matrix;
    matrix.module = "m";
    matrix.out = 2;
    matrix.in = 3;
    matrix.weight.dtype = type;
    matrix.weight.shape = {2, 3};
    matrix.weight.data = static_cast<const std::byte*>(data);
    matrix.weight.bytes = 6 * size_of(type);
    return matrix;
  }
  Matrix stored_matrix() { return ops_->matrix(stored(DType::f32, kValues)); }

  std::unique_ptr<Ops> ops_ = make_mlx_ops(MlxDevice::cpu);
};

TEST_F(MlxOperation, EveryPackingGivesMlxsOwnRowsAndProducts) {
  const auto all = read_golden_json("quantisation/matrices/quantisation.json");
  const std::string module = all.at("module");
  std::vector<std::string> modes;
  for (const auto& setting : all.at("settings")) {
    const std::string name = setting.at("file");
    SCOPED_TRACE(name);
    const auto file =
        SafetensorsFile::open(std::filesystem::path(FORESAY_TEST_DATA) / "quantisation" / "matrices" / name);
    StoredMatrix stored;
    stored.module = module;
    stored.out = setting.at("rows");
    stored.in = setting.at("cols");
    stored.weight = file.tensors().at(module + ".weight");
    stored.scales = file.tensors().at(module + ".scales");
    stored.quant = infer_geometry(module, stored.weight, stored.scales, stored.in);
    EXPECT_EQ(name_of(stored.quant->mode), setting.at("mode").get<std::string>());
    if (stored.quant->mode == QuantMode::affine) stored.biases = file.tensors().at(module + ".biases");
    const Matrix matrix = ops_->matrix(stored);

    std::vector<TokenId> ids;
    for (int row = 0; row < stored.out; ++row) ids.push_back(row);
    EXPECT_EQ(read(ops_->embed(matrix, ids)), file.tensors().at("dequantized").to_float());
    const auto x = file.tensors().at("x").to_float();
    const Tensor input = ops_->from_host(static_cast<int>(x.size()) / stored.in, stored.in, x);
    EXPECT_LE(max_abs(read(ops_->linear(input, matrix)), file.tensors().at("y").to_float()), 1e-4);  // y near 100
    modes.push_back(setting.at("mode"));
  }
  for (const char* mode : {"affine", "mxfp4", "mxfp8", "nvfp4"}) EXPECT_EQ(std::ranges::count(modes, mode) > 0, true);
}

TEST_F(MlxOperation, RawMatricesOfEveryFloatType) {
  const std::uint16_t f16[] = {0x3e00, 0xc000, 0x3400, 0x4200, 0x3800, 0xbc00},
                      bf16[] = {0x3fc0, 0xc000, 0x3e80, 0x4040, 0x3f00, 0xbf80};
  for (const auto& matrix : {stored(DType::f32, kValues), stored(DType::f16, f16), stored(DType::bf16, bf16)}) {
    const Tensor x = ops_->from_host(1, 3, std::vector<float>{1, 2, 4});
    EXPECT_EQ(read(ops_->linear(x, ops_->matrix(matrix))), (std::vector<float>{-1.5f, 0.0f}));
    EXPECT_EQ(read(ops_->embed(ops_->matrix(matrix), std::vector<TokenId>{1, 0})),
        (std::vector<float>{3.0f, 0.5f, -1.0f, 1.5f, -2.0f, 0.25f}));
  }
  try {
    (void)ops_->matrix(stored(DType::i32, kValues));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
  }
}

TEST_F(MlxOperation, NoRowsInGiveNoRowsOut) {
  const std::vector<float> ones(12, 1.0f);
  const Tensor x = ops_->from_host(4, 3, ones);
  const Tensor none = ops_->select(x, {});
  EXPECT_EQ(none.rows, 0);
  EXPECT_EQ(none.width, 3);
  EXPECT_TRUE(ops_->read(none).empty());
  EXPECT_EQ(ops_->rms_norm(none, ops_->vector({1, 1, 1}), 1e-6f).rows, 0);
  EXPECT_EQ(ops_->stack(std::vector<Tensor>{none, none}).rows, 0);
  EXPECT_EQ(ops_->stack(std::vector<Tensor>{none, x, none}).rows, 4);
}

TEST_F(MlxOperation, APassIsEvaluatedWhenItIsReadOrWhenTheNextBegins) {
  AttentionLayer layer(*ops_);
  const auto cache = layer.make_cache();
  const auto evaluated = [&] {
    const auto arrays = static_cast<MlxKvCache&>(*cache).arrays();
    return std::ranges::all_of(arrays, [](const mx::array& array) { return array.is_available(); });
  };
  layer.feed(*cache, {1, 2, 3});  // reads
  EXPECT_TRUE(evaluated());
  layer.fill(*cache, {4, 5});  // head history: nobody reads
  EXPECT_FALSE(evaluated());
  (void)ops_->embed(stored_matrix(), std::vector<TokenId>{0});
  EXPECT_TRUE(evaluated());
}

// What the head asks for: some rows of a slice, and slices whose order is not that of their rows.
TEST_F(MlxOperation, AttentionOfSomeRowsEqualsThatOfAll) {
  AttentionSpec spec;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 16;
  spec.rope.inv_freq = {1.0, 0.1, 0.01};
  spec.scale = 0.25f;
  spec.q_norm = ops_->vector(std::vector<float>(16, 1.0f));
  spec.k_norm = ops_->vector(std::vector<float>(16, 1.0f));
  const auto rows = [&](int count, int width, int input) {
    std::vector<int> tokens;
    for (int t = 0; t < count; ++t) tokens.push_back(t);
    return ops_->from_host(count, width, token_rows(tokens, width, input));
  };
  const auto run = [&](const std::vector<int>& wanted) {
    const auto first = ops_->make_kv_cache({2, 16, 16}), second = ops_->make_kv_cache({2, 16, 16});
    const CacheSlice slices[] = {{5, 4, second.get(), false}, {0, 5, first.get(), false}};
    return read(
        ops_->attention(spec, ops_->select(rows(9, 64, 0), wanted), wanted, rows(9, 32, 1), rows(9, 32, 2), slices));
  };
  const auto all = run(row_range(0, 9));
  for (const std::vector<int>& wanted : {std::vector<int>{0, 2, 3, 6}, {4, 8}, {1}, {7, 8}}) {
    EXPECT_LE(max_abs(run(wanted), rows_at(all, 64, wanted)), 1e-6);
  }
}

// Mixtures against the CPU lane, which tests/model/moe_test.cpp holds to their definition.
TEST_F(MlxOperation, ExpertsRunsAndClampsAreTheCpuLanes) {
  constexpr int kRows = 5, kExperts = 6, kHidden = 64, kWidth = 32;
  const auto values = [](int count, float step) {
    std::vector<float> all(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::sin(step * static_cast<float>(i) + step);
    return all;
  };
  const auto cpu = make_cpu_ops(1);
  const std::vector<float> up = values(kWidth * kHidden * kExperts, 0.37f),
                           down = values(kHidden * kWidth * kExperts, 0.71f);
  const auto each = [&](const std::vector<float>& all, int out, int in) {
    std::vector<StoredMatrix> matrices;
    for (int e = 0; e < kExperts; ++e) {
      StoredMatrix matrix = stored(DType::f32, all.data() + e * out * in);
      matrix.out = out;
      matrix.in = in;
      matrix.weight.shape = {out, in};
      matrix.weight.bytes = static_cast<std::size_t>(out * in) * sizeof(float);
      matrices.push_back(matrix);
    }
    return matrices;
  };
  for (const bool sigmoid : {false, true}) {
    const auto run = [&](Ops& ops) {
      RouterSpec spec{.chosen = 3, .bias = {}};
      if (sigmoid) {
        spec.score = RouterSpec::Score::sigmoid;
        spec.bias = ops.vector({0.3f, -0.2f, 0, 0.5f, 0.1f, -0.6f});
        spec.normalise = false;
        spec.factor = 2.5f;
      }
      const ExpertMlps experts{.gate = ops.experts(each(up, kWidth, kHidden)),
          .up = ops.experts(each(up, kWidth, kHidden)),
          .down = ops.experts(each(down, kHidden, kWidth)),
          .limit = sigmoid ? 0.4f : 0.0f};
      const Tensor x = ops.from_host(kRows, kHidden, values(kRows * kHidden, 0.13f));
      const Tensor logits = ops.from_host(kRows, kExperts, values(kRows * kExperts, 1.7f));
      Tensor y = ops.routed_mlp(spec, experts, x, logits, x);
      y = ops.gate_runs(y, ops.from_host(kRows, 4, values(kRows * 4, 0.9f)));
      y = ops.pick_runs(y, std::vector<int>{3, 0, 3, 1}, 16);
      const auto got = ops.read(ops.add(y, ops.swiglu(y, x, 0.3f)));
      return std::vector<float>(got.begin(), got.end());
    };
    EXPECT_LE(max_abs(run(*ops_), run(*cpu)), 2e-5) << sigmoid;
  }
}

TEST_F(MlxOperation, SaysWhereItRuns) {
  EXPECT_TRUE(ops_->describe().starts_with("mlx ")) << ops_->describe();
  EXPECT_TRUE(ops_->describe().ends_with(", cpu")) << ops_->describe();
}

}  // namespace
}  // namespace foresay
