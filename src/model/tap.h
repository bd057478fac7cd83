// model/tap.h: a look at the intermediate tensors of a pass, by name; off and free unless somebody listens.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "model/tensor.h"

namespace foresay {

/// Receives every tensor that families and layers name, in the order they make them. Given to a lane by Ops::set_tap.
///
/// Names are paths: the scopes that are open, then the tensor's own: "layers.3.attention.mixed", "mtp.1.fused". Tensors
/// have the rows of their operation, in order of the pass.
class Tap {
 public:
  using Receive = std::function<void(const std::string& name, const Tensor& x)>;
  explicit Tap(Receive receive) : receive_(std::move(receive)) {}

  void see(std::string_view name, const Tensor& x) {
    if (x.rows > 0) receive_(path_ + std::string(name), x);
  }

 private:
  friend class TapScope;
  Receive receive_;
  std::string path_;
};

/// Puts a prefix before every name as long as it lives. `tap` may be null; the prefix is then not even formatted.
class TapScope {
 public:
  template <typename... Args>
  explicit TapScope(Tap* tap, fmt::format_string<Args...> prefix, Args&&... args) : tap_(tap) {
    if (tap_ == nullptr) return;
    length_ = tap_->path_.size();
    tap_->path_ += fmt::format(prefix, std::forward<Args>(args)...);
  }
  TapScope(const TapScope&) = delete;
  TapScope& operator=(const TapScope&) = delete;
  ~TapScope() {
    if (tap_ != nullptr) tap_->path_.resize(length_);
  }

 private:
  Tap* tap_;
  std::size_t length_ = 0;
};

}  // namespace foresay
