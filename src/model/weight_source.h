// model/weight_source.h: named parameters of one part of a model, each taken exactly once.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/report.h"
#include "checkpoint/config.h"
#include "checkpoint/quantisation.h"
#include "checkpoint/tensor_view.h"
#include "model/contract.h"
#include "model/load.h"
#include "model/ops.h"

namespace foresay {

/// Hands tensors to a family by internal name, checks their shapes, and keeps account: what was asked for and missing,
/// what is left over. A name is the module's path inside the part ("layers.0.mlp.gate_proj").
class WeightSource {
 public:
  /// part: for messages, "trunk" or "head".
  WeightSource(std::string part, std::map<std::string, TensorView> tensors, const Config& config, Ops& ops,
      Report& report, std::vector<StorageEntry>& storage)
      : part_(std::move(part)),
        read_(part_ == "head" ? ReadShare{0, 1} : ReadShare{1, 0}),
        tensors_(std::move(tensors)),
        config_(config),
        ops_(ops),
        report_(report),
        storage_(storage) {}

  /// What is read of the matrices that are taken from now on; at first a trunk's are read whole by a token, a head's by
  /// a draft step.
  void set_read_share(ReadShare read) { read_ = read; }
  [[nodiscard]] ReadShare read_share() const { return read_; }
  /// How matrices that are taken from now on are kept.
  void set_packing(const HeadPacking& packing) { packing_ = packing; }

  [[nodiscard]] bool has(const std::string& tensor) const { return tensors_.contains(tensor); }
  [[nodiscard]] const TensorView* peek(const std::string& tensor) const;  ///< without taking it; null when absent

  /// `module`.weight [out, in], with .scales and .biases when quantised; the geometry comes from the shapes.
  [[nodiscard]] Matrix matrix(const std::string& module, int out, int in);
  /// The same, not yet handed to the lane.
  [[nodiscard]] StoredMatrix stored(const std::string& module, int out, int in);
  /// A router or gate [out, in], always as it is stored.
  [[nodiscard]] StoredMatrix router(const std::string& module, int out, int in);
  /// `count` matrices in one tensor [count, out, in], `module` with or without ".weight" behind it.
  [[nodiscard]] std::vector<StoredMatrix> stack(const std::string& module, int count, int out, int in);

  /// A whole tensor of `size` floats, as float32. Non-finite values are an error.
  [[nodiscard]] std::vector<float> values(const std::string& tensor, int size);

  /// A norm's gain [size]: `tensor` plus 1 when stored zero-centred.
  [[nodiscard]] Vector gain(const std::string& tensor, int size, bool zero_centred);

  /// Puts in a tensor that the files lack.
  void supply(const std::string& tensor, TensorView view) { tensors_.emplace(tensor, std::move(view)); }
  /// Takes a tensor out of the account without using it.
  void discard(const std::string& tensor) { tensors_.erase(tensor); }

  /// Throws ErrorCode::checkpoint naming tensors that nothing took. Warns once of each way in which config.json
  /// declares another packing than the tensors have.
  void expect_all_taken() const;

 private:
  /// A stored module, whole: shapes are `leading` and then those of a matrix [out, in].
  StoredMatrix whole(const std::string& module, std::vector<std::int64_t> leading, int out, int in);
  [[nodiscard]] StoredMatrix repack(const std::string& module, const StoredMatrix& stored) const;
  void account(std::span<const StoredMatrix> each);  ///< one entry for all of them
  TensorView take(const std::string& tensor, const std::string& expected_shape);
  [[noreturn]] void wrong_shape(const TensorView& view, const std::string& expected) const;

  std::string part_;
  ReadShare read_;
  HeadPacking packing_;
  std::map<std::string, TensorView> tensors_;
  const Config& config_;
  Ops& ops_;
  Report& report_;
  std::vector<StorageEntry>& storage_;
  std::map<std::string, std::vector<std::string>> contradicted_;  ///< what is wrong -> modules
};

}  // namespace foresay
