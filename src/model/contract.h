// model/contract.h: how a trunk and its MTP head are wired, decided once at load and shown to the user.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace foresay {

/// Which side of the final norm a hidden state is taken from.
enum class HiddenState { pre_norm, post_norm };
/// What the fusion projection reads first.
enum class ConcatOrder { embedding_hidden, hidden_embedding };
/// How norm gains are stored: as gain - 1, or as the gain itself.
enum class NormEncoding { zero_centred, absolute };

[[nodiscard]] std::string_view name_of(HiddenState value);
[[nodiscard]] std::string_view name_of(ConcatOrder value);
[[nodiscard]] std::string_view name_of(NormEncoding value);

/// A decision and where it came from ("family default", "config.json: mtp_hidden_state_mode").
template <typename T>
struct Decided {
  T value{};
  std::string source;
};

/// A head that is wired wrongly still gives correct text; only acceptance falls. So the wiring is data, each value with
/// its source.
struct Contract {
  Decided<HiddenState> base_hidden;      ///< what the trunk hands to the first draft step
  Decided<HiddenState> recycled_hidden;  ///< what the head hands to its next step: before or after its own final norm
  Decided<ConcatOrder> concat_order;
  Decided<NormEncoding> trunk_norms;
  Decided<NormEncoding> head_norms;
};

/// Values that the caller insists on; they beat every other source, also when they equal a default.
struct ContractOverrides {
  std::optional<HiddenState> base_hidden, recycled_hidden;
  std::optional<ConcatOrder> concat_order;
  std::optional<NormEncoding> head_norms;
};

}  // namespace foresay
