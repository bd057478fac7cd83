// checkpoint/checkpoint.h: a model folder: its configs, and every tensor its files hold, by name.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/report.h"
#include "checkpoint/config.h"
#include "checkpoint/tensor_view.h"

namespace foresay {

/// The MTP tensors of a folder, names relative to the head ("fc.weight"), and where they were found. A head of which
/// `problem` speaks is there but cannot be used; its tensors may be missing.
struct HeadTensors {
  std::map<std::string, TensorView> tensors;
  std::string found_in;          ///< "mtp/weights.safetensors", "model.safetensors"; empty when there are none
  bool in_trunk_shards = false;  ///< stored among the trunk's own shards
  std::map<std::string, std::string> metadata;  ///< of the side file
  Config manifest;                              ///< manifest.json beside a side file; empty object when there is none
  std::string problem;  ///< why the file in found_in, or its manifest, cannot be read; empty when all is well
};

/// A checkpoint folder in Hugging Face or MLX layout. Opening maps files and reads headers, never weights.
class Checkpoint {
 public:
  /// Reads config.json, the index and the shard headers. The union of index and headers counts: names the index omits
  /// are used with a warning; a file that is no shard of a complete index is ignored with a note; an index
  /// that names a missing shard, or tensors that its shard lacks, is an error that names both. Tensors of the
  /// vision tower are dropped. Throws ErrorCode::usage when the folder does not exist, ErrorCode::checkpoint for
  /// everything inside it but a damaged side file of the head: the trunk runs without it (HeadTensors::problem).
  [[nodiscard]] static Checkpoint open(const std::filesystem::path& folder, Report& report);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] const Config& config() const { return config_; }            ///< config.json, whole
  [[nodiscard]] const Config& text_config() const { return text_config_; }  ///< its text_config, or the whole
  [[nodiscard]] const Config& generation_config() const { return generation_config_; }  ///< empty when there is none
  [[nodiscard]] const Config& tokenizer_config() const { return tokenizer_config_; }    ///< empty when there is none

  /// Trunk tensors by their full name in the files.
  [[nodiscard]] const std::map<std::string, TensorView>& trunk() const { return trunk_; }
  [[nodiscard]] const std::map<std::string, std::string>& trunk_metadata() const { return trunk_metadata_; }
  [[nodiscard]] const HeadTensors& head() const { return head_; }
  [[nodiscard]] std::size_t mapped_bytes() const;  ///< of all tensors, trunk and head

 private:
  std::filesystem::path folder_;
  Config config_, text_config_, generation_config_, tokenizer_config_;
  std::map<std::string, TensorView> trunk_;
  std::map<std::string, std::string> trunk_metadata_;
  HeadTensors head_;
};

/// The name relative to the MTP head ("layers.0.mlp.gate_proj.weight"), or empty when it is no head tensor. Prefixes,
/// longest first: language_model.model.mtp. model.language_model.mtp. language_model.mtp. model.model.mtp. model.mtp.
/// mtp.
[[nodiscard]] std::string head_relative_name(const std::string& name);

/// Ids that end a turn: the union of every eos_token_id in config.json (both levels) and generation_config.json. Ids
/// given as token text (tokenizer_config.json eos_token) are resolved by the caller, who has the tokenizer.
[[nodiscard]] std::vector<int> declared_eos_ids(const Checkpoint& checkpoint);

}  // namespace foresay
