// kernels/golden_matrix.h: the matrices of golden/quantisation, as MLX packed them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "kernels/test_matrix.h"

namespace foresay {

struct GoldenMatrix {
  SafetensorsFile file;
  WeightView view;  ///< [40, 256]

  static GoldenMatrix open(const MatrixFormat& format) {
    if (format.type == WeightType::affine) return open(format.bits, format.group);
    const char* name = format.type == WeightType::mxfp4   ? "mxfp4"
                       : format.type == WeightType::mxfp8 ? "mxfp8"
                                                          : "nvfp4";
    const std::string module = "language_model.model.layers.0.mlp.down_proj";
    GoldenMatrix golden{SafetensorsFile::open(std::filesystem::path(FORESAY_TEST_DATA) / "quantisation" / "matrices" /
                                              (std::string(name) + ".safetensors")),
        {}};
    const auto& tensors = golden.file.tensors();
    golden.view = {.type = format.type,
        .out = 40,
        .in = 256,
        .data = tensors.at(module + ".weight").data,
        .bits = format.bits,
        .group = format.group,
        .scales = tensors.at(module + ".scales").data};
    return golden;
  }

  static GoldenMatrix open(int bits, int group) {
    const std::string name = "affine_b" + std::to_string(bits) + "_g" + std::to_string(group) + ".safetensors";
    const std::string module = "language_model.model.layers.0.mlp.down_proj";
    GoldenMatrix golden{
        SafetensorsFile::open(std::filesystem::path(FORESAY_TEST_DATA) / "quantisation" / "matrices" / name), {}};
    const auto& tensors = golden.file.tensors();
    golden.view = {.type = WeightType::affine,
        .out = 40,
        .in = 256,
        .data = tensors.at(module + ".weight").data,
        .bits = bits,
        .group = group,
        .scale_type = weight_type(tensors.at(module + ".scales").dtype),
        .scales = tensors.at(module + ".scales").data,
        .biases = tensors.at(module + ".biases").data};
    return golden;
  }

  [[nodiscard]] std::vector<float> tensor(const std::string& name) const { return file.tensors().at(name).to_float(); }
};

}  // namespace foresay
