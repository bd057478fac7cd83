// model/contract.h: how a trunk and its MTP head are wired, decided once at load and shown to the user.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace foresay {

/// Which side of its final norm the trunk's hidden state is taken from.
enum class HiddenState { pre_norm, post_norm };
/// What a head can hand to its next step: its block's output before or after the final norm, the fused projection, the
/// token's row of the embedding matrix, or the hidden state that came in.
enum class HeadState { pre_norm, post_norm, fc, embedding, prev };
/// What the fusion projection reads first.
enum class ConcatOrder { embedding_hidden, hidden_embedding };
/// Where the head's positions come from. A head here has read the whole text, so its own count (local), its cache's
/// (cache) and the trunk's (absolute) are the same.
enum class PositionMode { cache, local, absolute };
/// How norm gains are stored: as gain - 1, or as the gain itself.
enum class NormEncoding { zero_centred, absolute };

/// alpha * left + (1 - alpha) * right; one state alone has alpha 1 and itself on both sides.
struct RecycledHidden {
  HeadState left = HeadState::post_norm, right = HeadState::post_norm;
  float alpha = 1.0f;

  constexpr RecycledHidden() = default;
  constexpr RecycledHidden(HeadState state) : left(state), right(state) {}  // NOLINT: a state is such a value
  constexpr RecycledHidden(HeadState first, HeadState second, float share) : left(first), right(second), alpha(share) {}
  bool operator==(const RecycledHidden&) const = default;
};

/// How the head's matrices are kept in memory. Norms, routers and gates stay as they are, and what is stored packed is
/// not packed again.
struct HeadPacking {
  enum class Form {
    stored,  ///< as in the file
    bf16,    ///< unpacked
    affine,  ///< quantised at load
  };
  Form form = Form::stored;
  int bits = 0, group = 64;  ///< of affine: 2, 3, 4, 5, 6 or 8, and 32, 64 or 128
  bool all = false;          ///< also what lies outside the head's layers: fusion matrices, which bear it badly

  bool operator==(const HeadPacking&) const = default;
};

[[nodiscard]] std::string name_of(HiddenState value);
[[nodiscard]] std::string name_of(HeadState value);
[[nodiscard]] std::string name_of(const RecycledHidden& value);  ///< "post_norm", "mix:pre_norm:post_norm:0.75"
[[nodiscard]] std::string name_of(ConcatOrder value);
[[nodiscard]] std::string name_of(PositionMode value);
[[nodiscard]] std::string name_of(NormEncoding value);
[[nodiscard]] std::string name_of(const HeadPacking& value);  ///< "stored", "bf16", "affine:4:64", "affine:4:64:all"

/// The value that a text names; nothing where it names none. In a mix, `p` may stand for the decimal point, and alpha
/// is from 0 to 1. Norm encodings have the names that published tools write, too (delta, mlx_gamma, ...).
template <typename T>
[[nodiscard]] std::optional<T> contract_value(std::string_view text);
/// "pre_norm or post_norm", for messages.
template <typename T>
[[nodiscard]] std::string_view contract_choices();

/// A decision and where it came from ("family default", "config.json: mtp_hidden_state_mode").
template <typename T>
struct Decided {
  T value{};
  std::string source;
};

/// A head that is wired wrongly still gives correct text; only acceptance falls. So the wiring is data, each value with
/// its source.
struct Contract {
  Decided<HiddenState> base_hidden;         ///< what the trunk hands to the first draft step
  Decided<RecycledHidden> recycled_hidden;  ///< what the head hands to its next step
  Decided<ConcatOrder> concat_order;
  Decided<PositionMode> position_mode;
  Decided<NormEncoding> trunk_norms;
  Decided<NormEncoding> head_norms;
  Decided<HeadPacking> head_packing;
};

/// Values that the caller insists on; they beat every other source, also when they equal a default.
struct ContractOverrides {
  std::optional<HiddenState> base_hidden;
  std::optional<RecycledHidden> recycled_hidden;
  std::optional<ConcatOrder> concat_order;
  std::optional<PositionMode> position_mode;
  std::optional<NormEncoding> head_norms;
  std::optional<HeadPacking> head_packing;
};

}  // namespace foresay
