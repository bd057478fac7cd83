#include "model/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace foresay {
namespace {

template <typename T>
using Name = std::pair<std::string_view, T>;

// The first name of a value is the one that is written.
constexpr Name<HiddenState> kHiddenStates[] = {
    {"pre_norm", HiddenState::pre_norm}, {"post_norm", HiddenState::post_norm}};
constexpr Name<HeadState> kHeadStates[] = {{"pre_norm", HeadState::pre_norm}, {"post_norm", HeadState::post_norm},
    {"fc", HeadState::fc}, {"embedding", HeadState::embedding}, {"prev", HeadState::prev}};
constexpr Name<ConcatOrder> kConcatOrders[] = {
    {"embedding_hidden", ConcatOrder::embedding_hidden}, {"hidden_embedding", ConcatOrder::hidden_embedding}};
constexpr Name<PositionMode> kPositionModes[] = {
    {"cache", PositionMode::cache}, {"local", PositionMode::local}, {"absolute", PositionMode::absolute}};
constexpr Name<NormEncoding> kNormEncodings[] = {{"zero_centred", NormEncoding::zero_centred},
    {"absolute", NormEncoding::absolute}, {"delta", NormEncoding::zero_centred},
    {"delta_plus_one", NormEncoding::zero_centred}, {"mlx_delta", NormEncoding::zero_centred},
    {"gamma", NormEncoding::absolute}, {"mlx_gamma", NormEncoding::absolute}};

template <typename T, std::size_t N>
std::string first_name(const Name<T> (&names)[N], T value) {
  const auto found = std::find_if(std::begin(names), std::end(names), [&](const auto& n) { return n.second == value; });
  return found == std::end(names) ? "?" : std::string(found->first);
}

template <typename T, std::size_t N>
std::optional<T> value_of(const Name<T> (&names)[N], std::string_view text) {
  const auto found = std::find_if(std::begin(names), std::end(names), [&](const auto& n) { return n.first == text; });
  return found == std::end(names) ? std::nullopt : std::optional(found->second);
}

/// A share from 0 to 1, written 0.75 or 0p75.
std::optional<float> share_of(std::string_view text) {
  std::string digits(text);
  std::replace(digits.begin(), digits.end(), 'p', '.');
  float share = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), share, std::chars_format::fixed);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && share >= 0 && share <= 1 ? std::optional(share) : std::nullopt;
}

}  // namespace

std::string name_of(HiddenState value) {
  return first_name(kHiddenStates, value);
}
std::string name_of(HeadState value) {
  return first_name(kHeadStates, value);
}
std::string name_of(const RecycledHidden& value) {
  if (value == RecycledHidden(value.left)) return name_of(value.left);
  return fmt::format("mix:{}:{}:{}", name_of(value.left), name_of(value.right), value.alpha);
}
std::string name_of(ConcatOrder value) {
  return first_name(kConcatOrders, value);
}
std::string name_of(PositionMode value) {
  return first_name(kPositionModes, value);
}
std::string name_of(NormEncoding value) {
  return first_name(kNormEncodings, value);
}

std::string name_of(const HeadPacking& value) {
  if (value.form == HeadPacking::Form::stored) return "stored";
  if (value.form == HeadPacking::Form::bf16) return "bf16";
  return fmt::format("affine:{}:{}{}", value.bits, value.group, value.all ? ":all" : "");
}

template <>
std::optional<HiddenState> contract_value(std::string_view text) {
  return value_of(kHiddenStates, text);
}
template <>
std::optional<RecycledHidden> contract_value(std::string_view text) {
  if (const auto state = value_of(kHeadStates, text)) return RecycledHidden(*state);
  std::array<std::string_view, 4> parts;
  for (std::string_view& part : parts) {
    const std::size_t end = &part == &parts.back() ? text.size() : text.find(':');
    if (end == std::string_view::npos) return std::nullopt;
    part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto left = value_of(kHeadStates, parts[1]), right = value_of(kHeadStates, parts[2]);
  const auto share = share_of(parts[3]);
  if (parts[0] != "mix" || !left || !right || !share) return std::nullopt;
  return RecycledHidden(*left, *right, *share);
}
template <>
std::optional<ConcatOrder> contract_value(std::string_view text) {
  return value_of(kConcatOrders, text);
}
template <>
std::optional<PositionMode> contract_value(std::string_view text) {
  return value_of(kPositionModes, text);
}
template <>
std::optional<NormEncoding> contract_value(std::string_view text) {
  return value_of(kNormEncodings, text);
}

template <>
std::optional<HeadPacking> contract_value(std::string_view text) {
  if (text == "stored") return HeadPacking{};
  if (text == "bf16") return HeadPacking{.form = HeadPacking::Form::bf16};
  HeadPacking packing{.form = HeadPacking::Form::affine};
  if (text.starts_with("affine:")) text.remove_prefix(7);
  if (text.ends_with(":all")) {
    packing.all = true;
    text.remove_suffix(4);
  }
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto number = [](std::string_view digits, int& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  const bool is_read = number(text.substr(0, colon), packing.bits) &&
                       (colon == text.size() || number(text.substr(colon + 1), packing.group));
  const auto is_one_of = [](int value, std::initializer_list<int> all) {
    return std::ranges::find(all, value) != all.end();
  };
  if (!is_read || !is_one_of(packing.bits, {2, 3, 4, 5, 6, 8}) || !is_one_of(packing.group, {32, 64, 128})) {
    return std::nullopt;
  }
  return packing;
}

template <>
std::string_view contract_choices<HeadPacking>() {
  return "stored, bf16, or bits 2, 3, 4, 5, 6 or 8, with a group of 32, 64 or 128 and \"all\" behind them as wanted: "
         "4, "
         "4:32, 4:64:all";
}
template <>
std::string_view contract_choices<HiddenState>() {
  return "pre_norm or post_norm";
}
template <>
std::string_view contract_choices<RecycledHidden>() {
  return "pre_norm, post_norm, fc, embedding, prev, or mix:<one>:<other>:<share of the one, 0 to 1>";
}
template <>
std::string_view contract_choices<ConcatOrder>() {
  return "embedding_hidden or hidden_embedding";
}
template <>
std::string_view contract_choices<PositionMode>() {
  return "cache, local or absolute";
}
template <>
std::string_view contract_choices<NormEncoding>() {
  return "zero_centred (also delta, delta_plus_one, mlx_delta) or absolute (also gamma, mlx_gamma)";
}

}  // namespace foresay
