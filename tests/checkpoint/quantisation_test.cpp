#include "checkpoint/quantisation.h"

#include <gtest/gtest.h>

#include "checkpoint/expect_error.h"
#include "checkpoint/safetensors.h"
#include "fixtures/quantise_affine.h"

namespace foresay {
namespace {

const std::filesystem::path kMatrices = std::filesystem::path(FORESAY_TEST_DATA) / "quantisation" / "matrices";
const std::string kModule = "language_model.model.layers.0.mlp.down_proj";

TensorView shaped(DType dtype, std::vector<std::int64_t> shape) {
  TensorView view;
  view.dtype = dtype;
  view.shape = std::move(shape);
  return view;
}

QuantGeometry infer(std::vector<std::int64_t> weight, std::vector<std::int64_t> scales, DType scales_type, int in) {
  return infer_geometry("m", shaped(DType::u32, std::move(weight)), shaped(scales_type, std::move(scales)), in);
}

TEST(InferGeometry, AgreesWithTheNameOfEveryGoldenMatrix) {
  int n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kMatrices)) {
    if (entry.path().extension() != ".safetensors") continue;
    ++n_files;
    const auto file = SafetensorsFile::open(entry.path());
    const auto& weight = file.tensors().at(kModule + ".weight");
    const auto& scales = file.tensors().at(kModule + ".scales");
    const auto geometry = infer_geometry(kModule, weight, scales, 256);
    const bool affine = geometry.mode == QuantMode::affine;
    const auto name =
        affine ? fmt::format("affine_b{}_g{}", geometry.bits, geometry.group) : std::string(name_of(geometry.mode));
    EXPECT_EQ(name, entry.path().stem().string());
    EXPECT_EQ(file.tensors().contains(kModule + ".biases"), affine);
    if (!affine) {
      EXPECT_EQ(geometry.bits, geometry.mode == QuantMode::mxfp8 ? 8 : 4);
      EXPECT_EQ(geometry.group, geometry.mode == QuantMode::nvfp4 ? 16 : 32);
    }
  }
  EXPECT_EQ(n_files, 21);
}

TEST(InferGeometry, StackedExpertsCountTheirLastAxis) {
  EXPECT_EQ(infer({8, 40, 32}, {8, 40, 4}, DType::bf16, 256), (QuantGeometry{QuantMode::affine, 4, 64}));
}

TEST(InferGeometry, ShapesThatFitNoFormatAreRefused) {
  const auto refused = [](std::vector<std::int64_t> weight, std::vector<std::int64_t> scales, DType type, int in) {
    expect_error(ErrorCode::checkpoint, {"[quantisation] m: expected"},
        [&] { (void)infer(std::move(weight), std::move(scales), type, in); });
  };
  refused({40, 56}, {40, 4}, DType::bf16, 256);   // 7 bits
  refused({40, 8}, {40, 4}, DType::bf16, 256);    // 1 bit
  refused({40, 33}, {40, 4}, DType::bf16, 256);   // no whole number of bits
  refused({40, 32}, {40, 16}, DType::bf16, 256);  // groups of 16
  refused({40, 32}, {40, 3}, DType::bf16, 256);   // no whole groups
  refused({40, 32}, {39, 4}, DType::bf16, 256);   // rows disagree
  refused({40, 32}, {4}, DType::bf16, 256);       // rank disagrees
  refused({32}, {4}, DType::bf16, 256);           // a vector
  refused({40, 32}, {40, 4}, DType::u8, 256);     // no fp mode has groups of 64
  refused({40, 64}, {40, 16}, DType::u8, 256);    // 8 bits in groups of 16
  refused({40, 32}, {40, 4}, DType::i32, 256);    // integer scales
  refused({40, 0}, {40, 4}, DType::bf16, 256);    // nothing packed
  refused({40, 32}, {40, 0}, DType::bf16, 256);   // no scales
  refused({40, 32}, {40, 4}, DType::bf16, 0);     // no inputs
  refused({40, std::int64_t{1} << 60}, {40, 4}, DType::bf16, 256);
  expect_error(ErrorCode::checkpoint, {"U32", "BF16"},
      [] { (void)infer_geometry("m", shaped(DType::bf16, {40, 32}), shaped(DType::bf16, {40, 4}), 256); });
}

Config config(const std::string& text) {
  return {nlohmann::json::parse(text), "config.json"};
}
constexpr QuantGeometry kQ4{QuantMode::affine, 4, 64};

TEST(DeclaredGeometry, FindsTheGlobalValuesAtEitherLevelUnderEitherKey) {
  const std::string value = R"({"bits":4,"group_size":64})";
  for (const std::string key : {"quantization", "quantization_config"}) {
    EXPECT_EQ(declared_geometry(config("{\"" + key + "\":" + value + "}"), "m"), kQ4);
    EXPECT_EQ(declared_geometry(config("{\"text_config\":{\"" + key + "\":" + value + "}}"), "m"), kQ4);
  }
  EXPECT_EQ(declared_geometry(config("{}"), "m"), std::nullopt);
  EXPECT_EQ(declared_geometry(config(R"({"quantization":{}})"), "m"), std::nullopt);
  EXPECT_EQ(declared_geometry(config(R"({"quantization":null})"), "m"), std::nullopt);
}

TEST(DeclaredGeometry, QuantizationWinsOverQuantizationConfig) {
  const auto both =
      config(R"({"quantization":{"bits":4,"group_size":64},"quantization_config":{"quant_method":"fp8"}})");
  EXPECT_EQ(declared_geometry(both, "m"), kQ4);
}

TEST(DeclaredGeometry, PerModuleEntriesWinAndFalseMeansUnquantised) {
  const auto mixed = config(R"({"quantization":{"bits":4,"group_size":64,"mode":"affine",
      "language_model.model.layers.0.mlp.up_proj":{"bits":6,"group_size":32},
      "layers.0.mlp.down_proj":{"bits":4,"group_size":32,"mode":"mxfp4"},
      "model.layers.0.mlp.gate":{"bits":8},
      "language_model.lm_head":true,
      "language_model.model.layers.0.linear_attn.in_proj_a":false}})");
  for (const std::string prefix : {"", "model.", "language_model.model.", "model.language_model."}) {
    const auto declared = [&](const std::string& module) { return declared_geometry(mixed, prefix + module); };
    EXPECT_EQ(declared("layers.0.mlp.up_proj"), (QuantGeometry{QuantMode::affine, 6, 32}));
    EXPECT_EQ(declared("layers.0.mlp.down_proj"), (QuantGeometry{QuantMode::mxfp4, 4, 32}));
    EXPECT_EQ(declared("layers.0.mlp.gate"), (QuantGeometry{QuantMode::affine, 8, 64}));
    EXPECT_EQ(declared("layers.0.linear_attn.in_proj_a"), std::nullopt);
    EXPECT_EQ(declared("layers.1.mlp.up_proj"), kQ4);
  }
  EXPECT_EQ(declared_geometry(mixed, "lm_head"), kQ4);
}

TEST(DeclaredGeometry, ModesKnowTheirOwnSizes) {
  EXPECT_EQ(
      declared_geometry(config(R"({"quantization":{"mode":"nvfp4"}})"), "m"), (QuantGeometry{QuantMode::nvfp4, 4, 16}));
  EXPECT_EQ(
      declared_geometry(config(R"({"quantization":{"mode":"mxfp8"}})"), "m"), (QuantGeometry{QuantMode::mxfp8, 8, 32}));
}

TEST(DeclaredGeometry, VendorFormatsAreRefusedByName) {
  for (const std::string method : {"fp8", "awq", "gptq", "compressed-tensors", "modelopt"}) {
    expect_error(ErrorCode::unsupported, {method, "config.json: quantization_config"}, [&] {
      (void)declared_geometry(
          config("{\"quantization_config\":{\"quant_method\":\"" + method + "\",\"bits\":4}}"), "m");
    });
  }
  expect_error(ErrorCode::unsupported, {"int3"},
      [] { (void)declared_geometry(config(R"({"quantization":{"mode":"int3"}})"), "m"); });
}

TEST(DeclaredGeometry, ImpossibleValuesAreRefused) {
  for (const std::string value :
      {R"({"bits":7,"group_size":64})", R"({"bits":4,"group_size":48})", R"({"bits":"4"})", R"({"bits":true})",
          R"({"mode":"mxfp4","group_size":64})", R"({"bits":4,"m":5})", R"({"bits":4,"m":{"bits":9}})"}) {
    expect_error(ErrorCode::checkpoint, {"config.json: quantization"},
        [&] { (void)declared_geometry(config("{\"quantization\":" + value + "}"), "m"); });
  }
}

TEST(QuantiseAffine, ReproducesTheGoldensBitForBit) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group : {32, 64, 128}) {
      const auto golden = read_tensors(kMatrices / fmt::format("affine_b{}_g{}.safetensors", bits, group));
      const auto& original = golden.at("original");
      const auto packed =
          quantise_affine(original.to_float(), original.shape[0], original.shape[1], bits, group, DType::bf16);
      EXPECT_EQ(packed.weight.bytes, golden.at(kModule + ".weight").bytes) << bits << " " << group;
      EXPECT_EQ(packed.scales.bytes, golden.at(kModule + ".scales").bytes) << bits << " " << group;
      EXPECT_EQ(packed.biases.bytes, golden.at(kModule + ".biases").bytes) << bits << " " << group;
    }
  }
}

}  // namespace
}  // namespace foresay
