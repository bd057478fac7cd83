// model/model.h: all that decoding sees of a model: a trunk, an optional MTP head, and their caches.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foresay/token.h"
#include "model/cache/cache.h"
#include "model/contract.h"
#include "model/ops.h"
#include "model/tensor.h"

namespace foresay {

/// Which layer a draft step runs, and which hidden state a step behind the first reads.
enum class HeadScheme {
  reused,    ///< one layer at every step; a step reads what the step before left at the row before
  chained,   ///< step s runs layer s - 1 and reads what step s - 1 left at the same row
  parallel,  ///< step s runs layer s - 1 and reads the trunk's hidden state of the same row
};

struct ModelInfo {
  std::string family;      ///< row of the family table: "qwen3_5"
  std::string model_type;  ///< as config.json says
  int layers = 0, hidden = 0, vocab = 0;
  int context = 0;                     ///< most positions of one sequence, prompt and answer together
  std::vector<std::string> turn_ends;  ///< tokens that end a turn in this family, whatever the config files say
  int head_layers = 0;                 ///< MTP layers that were loaded; 0 without a head
  int max_depth = 0;                   ///< deepest draft the head can make, at most head_layers where these are
                                       ///< distinct; 0 without a head
  HeadScheme head_scheme = HeadScheme::reused;
};

/// Rows of one sequence in a pass: consecutive, in order of position, starting at the caches' length.
struct Slice {
  int first = 0, count = 0;
  CacheSet* caches = nullptr;
  bool provisional = false;  ///< drafted rows: the caches wait for keep()
};

/// Trunk rows [R] of any number of sequences. There is no padding: every row is a token.
struct Pass {
  std::vector<TokenId> tokens;
  std::vector<Slice> slices;
  std::vector<int> logit_rows;  ///< rows whose logits are wanted
};

struct Forward {
  Tensor pre_norm, post_norm;  ///< [R, D] hidden state before and after the final norm
  Tensor logits;               ///< [logit_rows, V]
};

/// A head's caches for one sequence: one set per distinct layer, since their lengths differ. A reused layer has one.
using HeadCaches = std::vector<std::unique_ptr<CacheSet>>;

/// Head rows at head positions. A reused layer pairs the hidden state of position t with the token at t + 1; layer
/// s - 1 of a distinct head pairs row t with the token at t + s (HeadScheme says whose hidden state).
struct HeadPass {
  int step = 1;                  ///< draft step s, 1-based; heads with distinct layers choose by it
  Tensor hidden;                 ///< [R, D] from the trunk (step 1) or as the scheme says
  std::vector<TokenId> tokens;   ///< [R]
  std::vector<Slice> slices;     ///< over the set of the step's layer
  std::vector<int> output_rows;  ///< rows whose result is wanted; the others only fill the cache: no attention, no MLP
  std::vector<int> logit_rows;   ///< indices into output_rows: the rows whose logits are wanted
  const VocabularySubset* vocabulary = nullptr;  ///< the ids whose logits are wanted; null is all of them
};

struct HeadForward {
  Tensor recycled;  ///< [output_rows, D] hidden state for the next step; empty without output rows
  Tensor logits;    ///< [logit_rows, V], or [logit_rows, vocabulary->size()] of a subset; empty without logit rows
};

/// A loaded model. Parameters are const; per-sequence state lives in the cache sets. Engine thread only.
class Model {
 public:
  virtual ~Model() = default;

  [[nodiscard]] virtual const ModelInfo& info() const = 0;
  [[nodiscard]] virtual const Contract& contract() const = 0;
  [[nodiscard]] virtual Ops& ops() const = 0;

  [[nodiscard]] virtual std::unique_ptr<CacheSet> make_caches() const = 0;
  [[nodiscard]] virtual HeadCaches make_head_caches() const = 0;  ///< throws ErrorCode::internal without a head

  [[nodiscard]] virtual Forward forward(const Pass& pass) const = 0;
  [[nodiscard]] virtual HeadForward draft(
      const HeadPass& pass) const = 0;  ///< throws ErrorCode::internal without a head

  /// The hidden state that the head's first step reads, by the contract.
  [[nodiscard]] const Tensor& head_input(const Forward& forward) const {
    return contract().base_hidden.value == HiddenState::pre_norm ? forward.pre_norm : forward.post_norm;
  }
};

}  // namespace foresay
